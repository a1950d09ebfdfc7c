package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func queries(r *run) {
	table := r.newTable()
	guid := func(n int) string { return fmt.Sprintf("%08d-0000-0000-0000-000000000007", n) }
	for n, row := range []string{"a", "b", "c"} {
		partition := "p"
		if row == "c" {
			partition = "it's"
		}
		table.add(entity{
			"PartitionKey": partition,
			"RowKey":       row,
			"Text":         []string{"alpha", "it's ü", ""}[n],
			"Int":          []int32{-5, 20, 300}[n],
			"Long":         []aztables.EDMInt64{-1 << 60, 1 << 53, 1<<53 + 1}[n],
			"Double":       []float64{-1.5, 5.5, 1e300}[n],
			"Flag":         n == 1,
			"Time":         aztables.EDMDateTime(time.Date(2024, 1, n+1, 12, 30, 0, 123456000, time.UTC)),
			"Guid":         aztables.EDMGUID(guid(n + 1)),
			"Binary":       []aztables.EDMBinary{{}, {0x00, 0xff}, {0x01}}[n],
		})
	}
	table.add(at("p", "z"))
	day := "datetime'2024-01-02T12:30:00.123456Z'"
	expected := map[string]string{
		"PartitionKey eq 'it''s'":                          "c",
		"PartitionKey eq 'p' and RowKey gt 'a'":            "b z",
		"RowKey ge 'b' and RowKey lt 'z'":                  "b c",
		"Text eq 'it''s ü'":                                "b",
		"Text eq ''":                                       "c",
		"Text gt 'alpha'":                                  "b",
		"Text ge 'a' and Text lt 'b'":                      "a",
		"Int eq -5":                                        "a",
		"Int lt 20":                                        "a",
		"Int le 20":                                        "a b",
		"Int ne 20":                                        "a c",
		"Long eq 9007199254740993L":                        "c",
		"Long gt 9007199254740992L":                        "c",
		"Long ge 9007199254740992L":                        "b c",
		"Long lt 0L":                                       "a",
		"Double eq 5.5":                                    "b",
		"Double lt 0.0":                                    "a",
		"Flag eq true":                                     "b",
		"Flag eq false":                                    "a c",
		"Time eq " + day:                                   "b",
		"Time gt " + day:                                   "c",
		"Time le " + day:                                   "a b",
		"Guid eq guid'" + guid(2) + "'":                    "b",
		"Guid ne guid'" + guid(2) + "'":                    "a c",
		"Binary eq X'00ff'":                                "b",
		"Binary eq binary'00FF'":                           "b",
		"Binary eq X''":                                    "a",
		"Binary gt X'00ff'":                                "c",
		"Int eq -5 or Flag eq true":                        "a b",
		"Int gt 0 and Double gt 10.0":                      "c",
		"Int eq 300 or Int eq 20 and Flag eq true":         "b c",
		"( Int eq 300 or Int eq 20 ) and Flag eq true":     "b",
		"(Int eq 300 or Int eq 20) and not (Flag eq true)": "c",
		"Int gt 0 and not ( Text eq 'it''s ü' )":           "c",
		"Missing eq 1":                                     "",
		"Missing ne 1":                                     "",
		"not (Missing eq 1)":                               "a b c z",
	}
	if r.does("exponent-literal") {
		expected["Double ge 1e+300"] = "c"
	}
	var wrong []string
	for filter, rows := range expected {
		keys := strings.Split(rowKeys(table.find(filter)), " ")
		slices.Sort(keys)
		if found := strings.Join(keys, " "); found != rows {
			wrong = append(wrong, fmt.Sprintf("%s: expected %q, got %q", filter, rows, found))
		}
	}
	equal(wrong, nil, "wrong results")
	_, err := table.list(&aztables.ListEntitiesOptions{Filter: to.Ptr("Int eq")})
	fails(err, 400, "InvalidInput")
}

func pages(r *run) {
	table := r.newTable()
	// Keys that are not ASCII must survive the continuation, which travels in headers.
	var entities []entity
	for n := range 25 {
		entities = append(entities, at(fmt.Sprintf("ü%d", n/13), fmt.Sprintf("é%02d", n)).with("Even", n%2 == 0))
	}
	for _, entity := range slices.Backward(entities) {
		table.add(entity)
	}
	of := func(top int32) aztables.ListEntitiesOptions { return aztables.ListEntitiesOptions{Top: &top} }
	tens, all := of(10), of(25)
	equal(must(table.pages(&tens)), [][]entity{entities[:10], entities[10:20], entities[20:]}, "pages of ten")
	equal(must(table.list(&all)), entities, "as many as the page holds")

	first := must(table.NewListEntitiesPager(&tens).NextPage(background))
	that(first.NextPartitionKey != nil && first.NextRowKey != nil, "no continuation after the first page")
	// A later page does not repeat earlier entities, and entities of later pages may change.
	for _, n := range []int{3, 10} {
		ok(table.delete(entities[n]["PartitionKey"].(string), entities[n]["RowKey"].(string), nil))
	}
	tens.NextPartitionKey, tens.NextRowKey = first.NextPartitionKey, first.NextRowKey
	equal(must(table.pages(&tens)), [][]entity{entities[11:21], entities[21:]}, "pages after the token")

	fives := of(5)
	fives.Filter = to.Ptr("Even eq true")
	var found, even []entity
	for _, page := range must(table.pages(&fives)) {
		that(len(page) <= 5, "a page of more than five")
		found = append(found, page...)
	}
	for n, entity := range entities {
		if n%2 == 0 && n != 10 {
			even = append(even, entity)
		}
	}
	equal(found, even, "filtered pages")
}
