package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const (
	add           = aztables.TransactionTypeAdd
	updateMerge   = aztables.TransactionTypeUpdateMerge
	updateReplace = aztables.TransactionTypeUpdateReplace
	insertMerge   = aztables.TransactionTypeInsertMerge
	insertReplace = aztables.TransactionTypeInsertReplace
	del           = aztables.TransactionTypeDelete
)

type change = aztables.TransactionAction

func (e entity) by(action aztables.TransactionType) change {
	return change{ActionType: action, Entity: e.json()}
}

// The client has no update without a condition in a transaction: without an ETag, it sends an upsert.
func (e entity) ifMatch(action aztables.TransactionType, etag azcore.ETag) change {
	return change{ActionType: action, Entity: e.json(), IfMatch: &etag}
}

func (t table) submit(changes ...change) error {
	_, err := t.SubmitTransaction(background, changes, nil)
	return err
}

func transactions(r *run) {
	table := r.newTable()
	key := func(row string) entity { return at("p, ü", row) }
	rows := []string{"delete", "merge", "put", "upsert merge", "upsert put"}
	var created []change
	for _, row := range rows {
		created = append(created, key(row).with("A", int32(1)).with("B", int32(1)).by(add))
	}
	ok(table.submit(created...))
	_, deleted := table.get("p, ü", "delete")
	_, put := table.get("p, ü", "put")

	awkward := key("new").with("A", "}{\r\n--changeset_ %7D")
	two := func(row string) entity { return key(row).with("A", int32(2)) }
	ok(table.submit(
		awkward.by(add),
		key("delete").ifMatch(del, deleted),
		two("merge").ifMatch(updateMerge, azcore.ETagAny),
		two("put").ifMatch(updateReplace, put),
		two("upsert merge").by(insertMerge),
		two("upsert put").by(insertReplace),
		two("new merge").by(insertMerge),
		two("new put").by(insertReplace),
		two("upsert by update").by(updateMerge),
	))
	expected := []entity{
		two("merge").with("B", int32(1)),
		awkward,
		two("new merge"),
		two("new put"),
		two("put"),
		two("upsert by update"),
		two("upsert merge").with("B", int32(1)),
		two("upsert put"),
	}
	equal(must(table.list(nil)), expected, "entities")

	var hundred, deletes []change
	for n := range 100 {
		hundred = append(hundred, key(fmt.Sprintf("%03d", n)).by(add))
		deletes = append(deletes, key(fmt.Sprintf("%03d", n)).by(del))
	}
	ok(table.submit(hundred...))
	equal(len(must(table.list(nil))), len(expected)+100, "entities after a hundred inserts")
	ok(table.submit(deletes...))
	equal(must(table.list(nil)), expected, "entities after the deletes")
}

func transactionsOnKeys(r *run) {
	table := r.newTable()
	usable := append([]string{}, keys...)
	if !r.does("quoted-comma") {
		usable = nil
		for _, key := range keys {
			if !strings.Contains(key, "',") {
				usable = append(usable, key)
			}
		}
	}
	// In the URLs of a transaction the client does not double the quotes of keys; so the caller does. The service reads the keys
	// of an update from the URL.
	doubled := func(partition, row string) entity {
		return at(strings.ReplaceAll(partition, "'", "''"), strings.ReplaceAll(row, "'", "''"))
	}
	for _, partition := range usable {
		var adds, merges, deletes []change
		for _, row := range usable {
			adds = append(adds, at(partition, row).with("A", row).by(add))
			merges = append(merges, doubled(partition, row).with("B", int32(2)).ifMatch(updateMerge, azcore.ETagAny))
			deletes = append(deletes, doubled(partition, row).by(del))
		}
		ok(table.submit(adds...))
		ok(table.submit(merges...))
		equal(len(table.find("PartitionKey eq "+quoted(partition))), len(usable), "entities of "+partition)
		for _, row := range usable {
			equal(table.entity(partition, row), at(partition, row).with("A", row).with("B", int32(2)), partition+" "+row)
		}
		ok(table.submit(deletes...))
	}
	equal(must(table.list(nil)), nil, "entities after the deletes")
	if r.does("quote-in-url") {
		transactionFails(table.submit(at("p", "O'Brien").by(insertMerge)), 202, "InvalidUri", 0)
		equal(must(table.list(nil)), nil, "entities after the refusal")
	}
}

// The client returns the status of the whole response, and no code: they are in its message.
func transactionFails(err error, status int, code string, index int) {
	var refused *azcore.ResponseError
	if !errors.As(err, &refused) {
		panic(fmt.Sprintf("expected %s, got %v", code, err))
	}
	equal(refused.StatusCode, status, "status of "+err.Error())
	found := regexp.MustCompile(`"code":\s*"(\w+)"[^}]*"value":\s*"(\d*)`).FindStringSubmatch(err.Error())
	that(found != nil, "no code in "+err.Error())
	equal(found[1], code, "code")
	equal(found[2], fmt.Sprint(index), "index of "+code)
}

func failedTransactions(r *run) {
	table := r.newTable()
	key := func(row string) entity { return at("p", row) }
	stale := table.add(key("a").with("A", int32(1)))
	must(table.update(key("a").with("A", int32(2)), aztables.UpdateModeMerge, nil))
	table.add(key("b").with("A", int32(1)))
	versions := func() map[string]azcore.ETag {
		found := map[string]azcore.ETag{}
		for _, entity := range must(table.list(nil)) {
			row := entity["RowKey"].(string)
			_, found[row] = table.get("p", row)
		}
		return found
	}
	before := versions()
	good := key("new").by(insertMerge)
	var many []change
	for n := range 101 {
		many = append(many, key(fmt.Sprintf("%03d", n)).by(insertMerge))
	}
	type failure struct {
		code    string
		index   int
		changes []change
	}
	failures := map[string]failure{
		"a conflict":       {"EntityAlreadyExists", 2, []change{good, key("b").by(del), key("a").by(add)}},
		"a missing entity": {"ResourceNotFound", 1, []change{good, key("none").ifMatch(updateMerge, azcore.ETagAny)}},
		"a stale update": {"UpdateConditionNotSatisfied", 1,
			[]change{good, key("a").ifMatch(updateReplace, stale), key("b").by(add)}},
		"a stale delete":  {"UpdateConditionNotSatisfied", 1, []change{good, key("a").ifMatch(del, stale)}},
		"an entity twice": {"InvalidDuplicateRow", 2, []change{good, key("b").by(del), key("b").by(insertMerge)}},
	}
	if r.does("property-names") {
		failures["a bad property"] = failure{"PropertyNameInvalid", 1, []change{good, key("x").with("a-b", int32(1)).by(add)}}
	}
	if r.does("batch-limit") {
		failures["101 changes"] = failure{"InvalidInput", 99, many}
	}
	for what, failure := range failures {
		transactionFails(table.submit(failure.changes...), 202, failure.code, failure.index)
		equal(versions(), before, "entities after "+what)
	}
	transactionFails(r.table(r.newName()).submit(good), 202, "TableNotFound", 0)
	that(table.submit().Error() == "transaction cannot be empty", "an empty transaction")
}
