// Operates on a table service with the official Go client, and checks the result of each call.
//
// Usage: client [--azurite] CONNECTION_STRING
//
// Each check has a table of its own, so a failure does not affect the other checks. The client has no errors of its own for
// statuses: each refusal is an azcore.ResponseError with the status and the code of the service.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// What `--azurite` leaves out. Everything else must hold there, too.
var azuriteLacks = map[string]string{
	"authentication-code":  "a bad signature is refused in XML, and with AuthorizationFailure",
	"batch-limit":          "the response to 101 changes is malformed",
	"cors-without-headers": "a CORS rule without headers is refused",
	"empty-properties":     "service properties without an element cause status 500",
	"exponent-literal":     "a filter with a number such as 1e+300 finds nothing",
	"ids-of-lists":         "keys in the ids of a list are not escaped",
	"name-codes":           "an invalid table name is refused without an error code",
	"padded-etags":         "ETags are compared as texts",
	"partial-policies":     "a policy without all fields is refused",
	"properties-limits":    "properties beyond the limits are accepted",
	"property-names":       "the name of a property may be anything",
	"quote-in-url":         "a single quote in the URL of a change is accepted",
	"quoted-comma":         "in a transaction, a quote and a comma in a key end it",
	"sas-address":          "the addresses of a SAS are ignored",
	"sas-batch":            "a transaction with a table SAS is refused",
	"sas-key-range":        "the range of keys of a table SAS is ignored",
	"sas-srt":              "a query of entities needs the resource type of tables",
	"sas-upsert":           "an upsert needs one of two permissions",
	"select-null":          "a selected property that the entity lacks is omitted instead of null",
	"trimmed-datetime":     "a DateTime is returned as it was written, with trailing zeros",
}

var checks = []struct {
	title string
	check func(*run)
}{
	{"create and delete tables", createAndDeleteTables},
	{"list tables by filter and in pages", listTables},
	{"invalid table names", invalidTableNames},
	{"every type, there and back", everyType},
	{"the last digits of a DateTime", dateTimes},
	{"amounts of metadata", metadata},
	{"select", selectProperties},
	{"awkward keys", awkwardKeys},
	{"an EDMEntity doubles the quotes of its keys", quotesOfEDMEntity},
	{"an empty partition key", emptyPartitionKey},
	{"queries on every type", queries},
	{"pages and continuation", pages},
	{"replace", replace},
	{"merge", merge},
	{"upsert", upsert},
	{"delete", remove},
	{"one client in many goroutines", goroutines},
	{"transactions of every kind of change", transactions},
	{"transactions on awkward keys", transactionsOnKeys},
	{"transactions that fail as a whole", failedTransactions},
	{"missing tables and entities, and conflicts", missing},
	{"a wrong account key", wrongKey},
	{"a table SAS", tableSAS},
	{"a table SAS with a range of keys", keyRange},
	{"URLs with a SAS", signedURLs},
	{"stored access policies", policies},
	{"an account SAS", accountSAS},
	{"service properties", serviceProperties},
	{"statistics, from the secondary", statistics},
	{"delete the tables", (*run).deleteTables},
}

type run struct {
	azurite          bool
	service          *aztables.ServiceClient
	endpoint         string
	account          string
	credential       *aztables.SharedKeyCredential
	connectionString string
	prefix           string
	names            []string
}

// A retry would hide a response that the service must not give.
func options() *aztables.ClientOptions {
	return &aztables.ClientOptions{ClientOptions: policy.ClientOptions{
		Retry:                           policy.RetryOptions{MaxRetries: -1},
		InsecureAllowCredentialWithHTTP: true,
	}}
}

func newRun(connectionString string, azurite bool) (*run, error) {
	service, err := aztables.NewServiceClientFromConnectionString(connectionString, options())
	if err != nil {
		return nil, err
	}
	parts := map[string]string{}
	for _, part := range strings.Split(connectionString, ";") {
		if name, value, found := strings.Cut(part, "="); found {
			parts[name] = value
		}
	}
	credential, err := aztables.NewSharedKeyCredential(parts["AccountName"], parts["AccountKey"])
	if err != nil {
		return nil, err
	}
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	return &run{
		azurite:          azurite,
		service:          service,
		endpoint:         strings.TrimSuffix(parts["TableEndpoint"], "/"),
		account:          parts["AccountName"],
		credential:       credential,
		connectionString: connectionString,
		prefix:           "go" + hex.EncodeToString(random),
	}, nil
}

// Reports whether the service must pass the checks that are named `what`.
func (r *run) does(what string) bool {
	if _, known := azuriteLacks[what]; !known {
		panic(fmt.Sprintf("%s is not in the list of what Azurite lacks", what))
	}
	return !r.azurite
}

func (r *run) newName() string {
	name := fmt.Sprintf("%s%03d", r.prefix, len(r.names))
	r.names = append(r.names, name)
	return name
}

func (r *run) newTable() table {
	name := r.newName()
	must(r.service.CreateTable(background, name, nil))
	return r.table(name)
}

func (r *run) table(name string) table {
	return table{r.service.NewClient(name), name}
}

func (r *run) tablesBetween(first, last string) []string {
	filter := fmt.Sprintf("TableName ge '%s' and TableName le '%s'", first, last)
	return slices.Concat(tablePages(r.service, &aztables.ListTablesOptions{Filter: &filter})...)
}

func (r *run) deleteTables() {
	for _, name := range r.names {
		_, err := r.service.DeleteTable(background, name, nil)
		if err != nil {
			fails(err, 404, "ResourceNotFound")
		}
	}
	equal(r.tablesBetween(r.prefix, r.prefix+"z"), nil, "tables that are left")
}

func main() {
	arguments := os.Args[1:]
	azurite := slices.Contains(arguments, "--azurite")
	arguments = slices.DeleteFunc(arguments, func(argument string) bool { return argument == "--azurite" })
	if len(arguments) != 1 {
		fmt.Fprintln(os.Stderr, "usage: client [--azurite] CONNECTION_STRING")
		os.Exit(2)
	}
	run, err := newRun(arguments[0], azurite)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if azurite {
		for _, name := range slices.Sorted(maps.Keys(azuriteLacks)) {
			fmt.Printf("left out: %s: %s\n", name, azuriteLacks[name])
		}
	}
	failed := 0
	for _, check := range checks {
		if err := attempt(run, check.check); err != nil {
			failed++
			fmt.Printf("FAILED: %s\n%v\n", check.title, err)
		} else {
			fmt.Printf("ok: %s\n", check.title)
		}
	}
	fmt.Printf("Go client: %d passed, %d failed\n", len(checks)-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

// Runs a check. A panic is its failure.
func attempt(run *run, check func(*run)) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = errors.New(fmt.Sprint(reason, "\n", string(debug.Stack())))
		}
	}()
	check(run)
	return nil
}
