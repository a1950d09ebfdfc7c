package main

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// To the second, as signatures and policies have it.
func hour() time.Time {
	return time.Now().UTC().Truncate(time.Second).Add(time.Hour)
}

// A client of the table that has a SAS and no key.
func (r *run) withSAS(name, token string) table {
	url := fmt.Sprintf("%s/%s?%s", r.endpoint, name, token)
	return table{must(aztables.NewClientWithNoCredential(url, options())), name}
}

func (r *run) withTableSAS(t table, values aztables.SASSignatureValues) table {
	return r.withSAS(t.name, r.tableSAS(t, values))
}

func (r *run) tableSAS(t table, values aztables.SASSignatureValues) string {
	values.TableName = t.name
	return must(values.Sign(r.credential))
}

func (r *run) withAccountSAS(values aztables.AccountSASSignatureValues) *aztables.ServiceClient {
	values.Services = "t"
	values.ExpiryTime = hour()
	token := must(values.Sign(r.credential))
	return must(aztables.NewServiceClientWithNoCredential(r.endpoint+"/?"+token.Encode(), options()))
}

func wrongKey(r *run) {
	credential := must(aztables.NewSharedKeyCredential(r.account, strings.Repeat("A", 86)+"=="))
	other := must(aztables.NewServiceClientWithSharedKey(r.endpoint, credential, options()))
	code := ""
	if r.does("authentication-code") {
		code = "AuthenticationFailed"
	}
	name := r.newName()
	_, err := other.CreateTable(background, name, nil)
	fails(err, 403, code)
	_, err = other.NewListTablesPager(nil).NextPage(background)
	fails(err, 403, code)
	equal(r.tablesBetween(name, name), nil, "tables")
}

func tableSAS(r *run) {
	table, other := r.newTable(), r.newTable()
	key := at("p", "r")
	table.add(key.with("A", int32(1)))

	everything := r.withTableSAS(table, aztables.SASSignatureValues{
		Permissions: aztables.SASPermissions{Read: true, Add: true, Update: true, Delete: true}.String(),
		ExpiryTime:  hour(),
	})
	everything.add(at("p", "s"))
	must(everything.upsert(at("p", "t"), aztables.UpdateModeMerge))
	must(everything.update(key.with("A", int32(2)), aztables.UpdateModeMerge, nil))
	equal(rowKeys(must(everything.list(nil))), "r s t", "row keys")
	ok(everything.delete("p", "s", nil))
	if r.does("sas-batch") {
		ok(everything.submit(at("p", "u").by(add), at("p", "v").by(insertReplace)))
		equal(rowKeys(must(everything.list(nil))), "r t u v", "row keys after a transaction")
		ok(everything.submit(at("p", "u").by(del), at("p", "v").by(del)))
	}
	equal(everything.entity("p", "r"), key.with("A", int32(2)), "entity")

	read := r.withTableSAS(table, aztables.SASSignatureValues{Permissions: "r", ExpiryTime: hour()})
	equal(rowKeys(must(read.list(nil))), "r t", "row keys with read alone")
	lacking := "AuthorizationPermissionMismatch"
	_, err := read.AddEntity(background, at("p", "u").json(), nil)
	r.refused(err, 403, lacking)
	_, err = read.update(key.with("A", int32(3)), aztables.UpdateModeMerge, nil)
	r.refused(err, 403, lacking)
	r.refused(read.delete("p", "r", nil), 403, lacking)
	if r.does("sas-upsert") {
		for _, permission := range []string{"a", "u"} {
			partly := r.withTableSAS(table, aztables.SASSignatureValues{Permissions: permission, ExpiryTime: hour()})
			_, err = partly.upsert(key.with("A", int32(3)), aztables.UpdateModeMerge)
			r.refused(err, 403, lacking)
		}
	}
	equal(table.entity("p", "r"), key.with("A", int32(2)), "entity after the refusals")

	token := r.tableSAS(table, aztables.SASSignatureValues{Permissions: "raud", ExpiryTime: hour()})
	_, err = r.withSAS(other.name, token).list(nil)
	r.refused(err, 403, "AuthorizationFailure")
	failed := "AuthenticationFailed"
	_, err = r.withSAS(table.name, strings.Replace(token, "sp=raud", "sp=ra", 1)).list(nil)
	r.refused(err, 403, failed)
	late := r.withTableSAS(table, aztables.SASSignatureValues{Permissions: "r", ExpiryTime: hour().Add(-2 * time.Hour)})
	_, err = late.list(nil)
	r.refused(err, 403, failed)
	early := aztables.SASSignatureValues{Permissions: "r", StartTime: hour(), ExpiryTime: hour().Add(time.Hour)}
	_, err = r.withTableSAS(table, early).list(nil)
	r.refused(err, 403, failed)
	from := func(first, last string) ([]entity, error) {
		addresses := aztables.IPRange{Start: net.ParseIP(first), End: net.ParseIP(last)}
		values := aztables.SASSignatureValues{Permissions: "r", ExpiryTime: hour(), IPRange: addresses}
		return r.withTableSAS(table, values).list(nil)
	}
	if r.does("sas-address") {
		_, err = from("192.0.2.1", "192.0.2.9")
		r.refused(err, 403, "AuthorizationSourceIPMismatch")
	}
	equal(len(must(from("127.0.0.0", "127.0.0.255"))), 2, "entities for an address of the range")
}

// The client signs the range, but leaves it out of the URL; the service cannot confirm such a signature. With the range
// added, the signature is valid.
func keyRange(r *run) {
	if !r.does("sas-key-range") {
		return
	}
	table := r.newTable()
	for _, partition := range []string{"A", "B", "C"} {
		for _, row := range []string{"1", "2", "3"} {
			table.add(at(partition, row))
		}
	}
	token := r.tableSAS(table, aztables.SASSignatureValues{
		Permissions:       "raud",
		ExpiryTime:        hour(),
		StartPartitionKey: "A",
		StartRowKey:       "2",
		EndPartitionKey:   "C",
		EndRowKey:         "1",
	})
	_, err := r.withSAS(table.name, token).list(nil)
	r.refused(err, 403, "AuthenticationFailed")

	client := r.withSAS(table.name, token+"&spk=A&srk=2&epk=C&erk=1")
	equal(rowKeys(must(client.list(nil))), "2 3 1 2 3 1", "row keys in range")
	equal(client.entity("C", "1"), at("C", "1"), "the last entity")
	_, err = client.GetEntity(background, "C", "2", nil)
	r.refused(err, 404, "ResourceNotFound")
	outside := "AuthorizationFailure"
	_, err = client.AddEntity(background, at("A", "0").json(), nil)
	r.refused(err, 403, outside)
	_, err = client.update(at("A", "1"), aztables.UpdateModeReplace, nil)
	r.refused(err, 403, outside)
	_, err = client.upsert(at("A", "1"), aztables.UpdateModeMerge)
	r.refused(err, 403, outside)
	r.refused(client.delete("A", "1", nil), 403, outside)
	ok(client.delete("B", "1", nil))
	equal(rowKeys(must(table.list(nil))), "1 2 3 2 3 1 2 3", "row keys that are left")
}

// The client appends the name of the table without a slash, so its URL is right only if that of the service ends with one. Its
// account SAS permits HTTPS alone.
func signedURLs(r *run) {
	table := r.newTable()
	table.add(at("p", "r"))
	slashed := must(aztables.NewServiceClientWithSharedKey(r.endpoint+"/", r.credential, options()))
	permissions := aztables.SASPermissions{Read: true}
	url := must(slashed.NewClient(table.name).GetTableSASURL(permissions, time.Time{}, hour()))
	client := must(aztables.NewClientWithNoCredential(url, options()))
	must(client.GetEntity(background, "p", "r", nil))
	wrong := must(must(aztables.NewServiceClientWithSharedKey(r.endpoint, r.credential, options())).
		NewClient(table.name).GetTableSASURL(permissions, time.Time{}, hour()))
	that(strings.Contains(wrong, r.account+table.name), "the URL has a slash: "+wrong)

	secure := must(slashed.GetAccountSASURL(
		aztables.AccountSASResourceTypes{Object: true, Container: true, Service: true},
		aztables.AccountSASPermissions{Read: true, List: true}, time.Time{}, hour()))
	service := must(aztables.NewServiceClientWithNoCredential(secure, options()))
	_, err := service.NewListTablesPager(nil).NextPage(background)
	r.refused(err, 403, "AuthorizationProtocolMismatch")
}

func policies(r *run) {
	table := r.newTable()
	table.add(at("p", "r"))
	equal(must(table.GetAccessPolicy(background, nil)).SignedIdentifiers, nil, "policies of a new table")
	expiry := hour()
	start := expiry.Add(-2 * time.Hour)
	given := []*aztables.SignedIdentifier{{
		ID:           to.Ptr("read"),
		AccessPolicy: &aztables.AccessPolicy{Start: &start, Expiry: &expiry, Permission: to.Ptr("r")},
	}}
	if r.does("partial-policies") {
		given = append(given,
			&aztables.SignedIdentifier{ID: to.Ptr("partial"), AccessPolicy: &aztables.AccessPolicy{Permission: to.Ptr("r")}},
			&aztables.SignedIdentifier{ID: to.Ptr("empty")})
	}
	set := func(policies []*aztables.SignedIdentifier) error {
		_, err := table.SetAccessPolicy(background, &aztables.SetAccessPolicyOptions{TableACL: policies})
		return err
	}
	ok(set(given))
	got := must(table.GetAccessPolicy(background, nil)).SignedIdentifiers
	equal(len(got), len(given), "policies")
	for n, policy := range given {
		equal(*got[n].ID, *policy.ID, "id")
		if policy.AccessPolicy == nil {
			that(got[n].AccessPolicy == nil || *got[n].AccessPolicy == aztables.AccessPolicy{}, "the empty policy has fields")
		} else {
			equal(got[n].AccessPolicy, policy.AccessPolicy, "policy "+*policy.ID)
		}
	}

	client := r.withTableSAS(table, aztables.SASSignatureValues{Identifier: "read"})
	equal(len(must(client.list(nil))), 1, "entities by a policy")
	_, err := client.AddEntity(background, at("p", "s").json(), nil)
	r.refused(err, 403, "AuthorizationPermissionMismatch")
	failed := "AuthenticationFailed"
	if r.does("partial-policies") {
		completed := r.withTableSAS(table, aztables.SASSignatureValues{Identifier: "partial", ExpiryTime: expiry})
		equal(len(must(completed.list(nil))), 1, "entities by a policy and an expiry")
		both := r.withTableSAS(table, aztables.SASSignatureValues{Identifier: "read", Permissions: "r"})
		_, err = both.list(nil)
		r.refused(err, 403, failed)
	}
	_, err = r.withTableSAS(table, aztables.SASSignatureValues{Identifier: "unknown"}).list(nil)
	r.refused(err, 403, failed)

	var six []*aztables.SignedIdentifier
	for n := range 6 {
		policy := &aztables.AccessPolicy{Start: &start, Expiry: &expiry, Permission: to.Ptr("r")}
		six = append(six, &aztables.SignedIdentifier{ID: to.Ptr(fmt.Sprint(n)), AccessPolicy: policy})
	}
	err = set(six)
	that(err != nil && strings.Contains(err.Error(), "more than five"), fmt.Sprintf("six policies: %v", err))
	equal(must(table.GetAccessPolicy(background, nil)).SignedIdentifiers, got, "policies after the refusal")
	ok(set(nil))
	equal(must(table.GetAccessPolicy(background, nil)).SignedIdentifiers, nil, "policies after they were cleared")
	_, err = client.list(nil)
	r.refused(err, 403, failed)
	nowhere := r.table(r.newName())
	_, err = nowhere.GetAccessPolicy(background, nil)
	fails(err, 404, "TableNotFound")
	_, err = nowhere.SetAccessPolicy(background, &aztables.SetAccessPolicyOptions{TableACL: given})
	fails(err, 404, "TableNotFound")
}

func accountSAS(r *run) {
	if !r.does("sas-srt") {
		return
	}
	owned := r.newTable()
	owned.add(at("p", "r"))
	name := r.newName()
	service := r.withAccountSAS(aztables.AccountSASSignatureValues{
		ResourceTypes: aztables.AccountSASResourceTypes{Service: true, Container: true, Object: true}.String(),
		Permissions: aztables.AccountSASPermissions{
			Read: true, Write: true, Delete: true, List: true, Add: true, Create: true, Update: true,
		}.String(),
		Protocol: aztables.SASProtocolHTTPSandHTTP,
	})
	must(service.CreateTable(background, name, nil))
	other := table{service.NewClient(name), name}
	must(other.upsert(at("p", "r").with("A", int32(1)), aztables.UpdateModeMerge))
	equal(other.entity("p", "r"), at("p", "r").with("A", int32(1)), "entity")
	filter := "TableName eq " + quoted(name)
	equal(tablePages(service, &aztables.ListTablesOptions{Filter: &filter}), [][]string{{name}}, "tables")
	that(must(service.GetProperties(background, nil)).HourMetrics != nil, "no hour metrics")
	must(service.DeleteTable(background, name, nil))

	objects := r.withAccountSAS(aztables.AccountSASSignatureValues{ResourceTypes: "o", Permissions: "r"})
	entities := table{objects.NewClient(owned.name), owned.name}
	equal(len(must(entities.list(nil))), 1, "entities")
	_, err := entities.AddEntity(background, at("p", "s").json(), nil)
	r.refused(err, 403, "AuthorizationPermissionMismatch")
	lacking := "AuthorizationResourceTypeMismatch"
	_, err = objects.NewListTablesPager(nil).NextPage(background)
	r.refused(err, 403, lacking)
	_, err = objects.CreateTable(background, name, nil)
	r.refused(err, 403, lacking)
	_, err = objects.GetProperties(background, nil)
	r.refused(err, 403, lacking)
	_, err = entities.GetAccessPolicy(background, nil)
	r.refused(err, 403, "AuthorizationFailure")
	equal(r.tablesBetween(name, name), nil, "tables after the refusals")
}
