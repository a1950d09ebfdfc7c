package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var keys = []string{
	" ",
	" two  words ",
	"O'Brien",
	"''",
	"a,b",
	"(a)",
	"x',RowKey='y",
	"100%",
	"%41", // decoded twice it is another key
	"%2F", // decoded twice it is not a key
	"a+b",
	"a&b",
	"a=b",
	"a;b:c@d!e*f~g$h",
	`"<[{|}]>"^` + "`",
	"{rowKey}", // a placeholder of the client's URLs
	"Zürich",
	"東京",
	"🦀",
	"Ａ", // before the crab in code points, after it in UTF-16 units, which is the order of the service
}

var bytes256 = func() []byte {
	all := make([]byte, 256)
	for n := range all {
		all[n] = byte(n)
	}
	return all
}()

func everyType(r *run) {
	table := r.newTable()
	sent := entity{
		"PartitionKey": "p",
		"RowKey":       "r",
		"Text":         "Grüße, 東京 🦀\n\t\"quoted\" \\ 'single' <&>\u2028",
		"TextEmpty":    "",
		"Int":          int32(math.MinInt32),
		"IntZero":      int32(0),
		"Long":         aztables.EDMInt64(1<<53 + 1),
		"LongMin":      aztables.EDMInt64(math.MinInt64),
		"LongSmall":    aztables.EDMInt64(5),
		"Double":       0.1,
		"DoubleBig":    math.MaxFloat64,
		"DoubleTiny":   math.SmallestNonzeroFloat64,
		"Yes":          true,
		"No":           false,
		"Time":         aztables.EDMDateTime(time.Date(2024, 2, 29, 23, 59, 59, 123456700, time.UTC)),
		"TimeEarly":    aztables.EDMDateTime(time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)),
		"Guid":         aztables.EDMGUID("0d391d16-97f1-4b9a-be68-4cc871f9ac01"),
		"Binary":       aztables.EDMBinary(bytes256),
		"BinaryEmpty":  aztables.EDMBinary{},
		"größe":        int32(1),
		"case":         "lower",
		"Case":         "upper",
		"ETag":         "of the caller",
		"odata":        "of the caller, too",
		"Nothing":      nil,
	}
	created := table.add(sent)
	expected := entity{}
	for name, value := range sent {
		if value != nil {
			expected[name] = value
		}
	}
	got, etag := table.get("p", "r")
	equal(got, expected, "entity")
	equal(etag, created, "ETag of the insert and of the get")
	_, read := decode(must(table.GetEntity(background, "p", "r", nil)).Value)
	age := time.Since(time.Time(read.Timestamp))
	that(age.Abs() < 15*time.Minute, fmt.Sprintf("the timestamp is off by %s", age))
	equal(azcore.ETag(read.ETag), created, "ETag in the body")
	listed := must(table.list(&aztables.ListEntitiesOptions{Select: to.Ptr("Long")}))
	equal(listed, []entity{{"Long": sent["Long"]}}, "listed")

	// What an EDMEntity changes: it writes a whole float64 as an Int32, reads no Double that has an annotation, and
	// writes the local time of a time zone as if it were UTC.
	eastern := time.FixedZone("two hours east", 2*60*60)
	table.add(at("p", "changed").
		with("Whole", 5.0).
		with("Zoned", aztables.EDMDateTime(time.Date(2024, 7, 1, 1, 30, 0, 0, eastern))))
	equal(table.entity("p", "changed"), at("p", "changed").
		with("Whole", int32(5)).
		with("Zoned", aztables.EDMDateTime(time.Date(2024, 7, 1, 1, 30, 0, 0, time.UTC))), "what is changed")

	// JSON that a program writes itself has every Double.
	for text, value := range map[string]string{"5": "5", "NaN": `"NaN"`, "Inf": `"Infinity"`, "-Inf": `"-Infinity"`} {
		row := "double " + text
		written := fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%s","V@odata.type":"Edm.Double","V":%s}`, row, value)
		must(table.AddEntity(background, []byte(written), nil))
		number := must(strconv.ParseFloat(text, 64))
		var raw struct{ V any }
		ok(json.Unmarshal(must(table.GetEntity(background, "p", row, nil)).Value, &raw))
		if math.IsNaN(number) || math.IsInf(number, 0) {
			equal(raw.V, any(strings.Trim(value, `"`)), row)
			equal(table.entity("p", row), at("p", row).with("V", nil), row+" in an EDMEntity")
		} else {
			equal(raw.V, any(number), row)
			equal(len(table.find(fmt.Sprintf("RowKey eq '%s' and V eq 5.0", row))), 1, row+" by its value")
		}
	}
}

func dateTimes(r *run) {
	table := r.newTable()
	times := map[string]string{
		"2024-02-29T23:59:59.1234567Z": "2024-02-29T23:59:59.1234567Z",
		"9999-12-31T23:59:59.9999999Z": "9999-12-31T23:59:59.9999999Z",
	}
	if r.does("trimmed-datetime") {
		times["2024-02-29T23:59:59.1200000Z"] = "2024-02-29T23:59:59.12Z"
		times["2024-02-29T23:59:59.0000000Z"] = "2024-02-29T23:59:59Z"
	}
	for sent, expected := range times {
		written := at("p", sent).with("At", sent).with("At@odata.type", "Edm.DateTime")
		must(table.AddEntity(background, written.json(), nil))
		var raw struct{ At string }
		ok(json.Unmarshal(must(table.GetEntity(background, "p", sent, nil)).Value, &raw))
		equal(raw.At, expected, "string of the DateTime")
	}
}

func metadata(r *run) {
	table := r.newTable()
	sent := at("it's p", "r").with("Long", aztables.EDMInt64(5))
	for format, expected := range map[aztables.MetadataFormat]struct {
		etag, id, typed bool
	}{
		aztables.MetadataFormatNone:    {},
		aztables.MetadataFormatMinimal: {etag: true, typed: true},
		aztables.MetadataFormatFull:    {etag: true, id: true, typed: true},
	} {
		added := must(table.AddEntity(background, sent.json(), &aztables.AddEntityOptions{Format: &format}))
		got := must(table.GetEntity(background, "it's p", "r", &aztables.GetEntityOptions{Format: &format}))
		page := must(table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Format: &format}).NextPage(background))
		for what, value := range map[string][]byte{"insert": added.Value, "get": got.Value, "list": page.Entities[0]} {
			what = fmt.Sprintf("%s with %s", what, format)
			properties, read := decode(value)
			equal(read.ETag != "", expected.etag, "ETag of the "+what)
			id := fmt.Sprintf("/%s(PartitionKey='it''s%%20p',RowKey='r')", table.name)
			if expected.id && r.does("ids-of-lists") {
				that(strings.HasSuffix(read.ID, id), "id of the "+what+": "+read.ID)
			}
			equal(read.ID != "", expected.id, "id of the "+what)
			equal(read.EditLink != "", expected.id, "link of the "+what)
			equal(read.Type != "", expected.id, "type of the "+what)
			_, typed := properties["Long"].(aztables.EDMInt64)
			equal(typed, expected.typed, "type of a property of the "+what)
		}
		ok(table.delete("it's p", "r", nil))
	}
}

func selectProperties(r *run) {
	table := r.newTable()
	table.add(at("p", "r").with("A", int32(1)).with("B", aztables.EDMInt64(2)).with("C", "c"))
	selected := func(names, filter string) []entity {
		return must(table.list(&aztables.ListEntitiesOptions{Select: &names, Filter: &filter}))
	}
	equal(selected("A,B", "RowKey eq 'r'"), []entity{{"A": int32(1), "B": aztables.EDMInt64(2)}}, "two of them")
	equal(selected("PartitionKey,RowKey,C", "RowKey eq 'r'"), []entity{at("p", "r").with("C", "c")}, "with the keys")
	equal(selected("C", "A eq 1"), []entity{{"C": "c"}}, "query by another property")
	if r.does("select-null") {
		page := must(table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Select: to.Ptr("A,Missing")}).NextPage(background))
		var raw map[string]any
		ok(json.Unmarshal(page.Entities[0], &raw))
		missing, present := raw["Missing"]
		that(present && missing == nil, "a missing property that is selected is null")
		// An EDMEntity reads null as the number 0.
		equal(selected("A,Missing", "RowKey eq 'r'"), []entity{{"A": int32(1), "Missing": int32(0)}}, "missing property")
	}
}

func awkwardKeys(r *run) {
	table := r.newTable()
	// Each key in both places, but not the same one in both: exchanged keys would remain unnoticed.
	type pair struct{ partition, row string }
	var pairs []pair
	for n, partition := range keys {
		pairs = append(pairs, pair{partition, keys[(n+7)%len(keys)]})
	}
	pairs = append(pairs, pair{"p", ""})
	for _, key := range pairs {
		sent := at(key.partition, key.row).with("N", int32(1)).with("Kept", key.partition+key.row)
		table.add(sent)
		_, err := table.AddEntity(background, sent.json(), nil)
		fails(err, 409, "EntityAlreadyExists")
	}
	sorted := slices.Clone(pairs)
	units := func(key string) []uint16 { return utf16.Encode([]rune(key)) }
	slices.SortFunc(sorted, func(a, b pair) int { return slices.Compare(units(a.partition), units(b.partition)) })
	listed := func(options *aztables.ListEntitiesOptions) []pair {
		var pairs []pair
		for _, found := range must(table.list(options)) {
			pairs = append(pairs, pair{found["PartitionKey"].(string), found["RowKey"].(string)})
		}
		return pairs
	}
	equal(listed(nil), sorted, "keys in order")
	equal(listed(&aztables.ListEntitiesOptions{Top: to.Ptr[int32](1)}), sorted, "keys, one in each page")
	for _, key := range pairs {
		what := fmt.Sprintf("%q", key)
		entity := at(key.partition, key.row)
		must(table.update(entity.with("N", int32(2)), aztables.UpdateModeMerge, nil))
		expected := entity.with("N", int32(2)).with("Kept", key.partition+key.row)
		equal(table.entity(key.partition, key.row), expected, what)
		found := table.find(fmt.Sprintf("PartitionKey eq %s and RowKey eq %s", quoted(key.partition), quoted(key.row)))
		if len(found) != 1 {
			panic(fmt.Sprintf("query for %s: %v", what, found))
		}
		equal(found[0], expected, "query for "+what)
		must(table.upsert(entity.with("N", int32(3)), aztables.UpdateModeReplace))
		equal(table.entity(key.partition, key.row), entity.with("N", int32(3)), what)
		ok(table.delete(key.partition, key.row, nil))
		_, err := table.GetEntity(background, key.partition, key.row, nil)
		fails(err, 404, "ResourceNotFound")
	}
	equal(must(table.list(nil)), nil, "entities after the deletes")
}

// The client doubles the quotes in the body of the request, where they have no meaning, and again in the URL. So it inserts an
// entity with another key, and its updates agree with that; a get and a delete of the key that was meant do not.
func quotesOfEDMEntity(r *run) {
	table := r.newTable()
	marshaled := must(json.Marshal(aztables.EDMEntity{
		Entity:     aztables.Entity{PartitionKey: "p", RowKey: "O'Brien"},
		Properties: map[string]any{"A": int32(1)},
	}))
	must(table.AddEntity(background, marshaled, nil))
	_, err := table.GetEntity(background, "p", "O'Brien", nil)
	fails(err, 404, "ResourceNotFound")
	must(table.UpdateEntity(background, marshaled, nil))
	equal(table.entity("p", "O''Brien"), at("p", "O''Brien").with("A", int32(1)), "entity")
	equal(len(must(table.list(nil))), 1, "entities")
}

// The client has no URL for such an entity; it can insert and find it.
func emptyPartitionKey(r *run) {
	table := r.newTable()
	entity := at("", "r").with("A", int32(1))
	table.add(entity)
	equal(table.find("PartitionKey eq ''")[0], entity, "entity")
	refusals := map[string]error{}
	_, refusals["get"] = table.GetEntity(background, "", "r", nil)
	_, refusals["update"] = table.update(entity, aztables.UpdateModeMerge, nil)
	_, refusals["upsert"] = table.upsert(entity, aztables.UpdateModeReplace)
	refusals["delete"] = table.delete("", "r", nil)
	for what, err := range refusals {
		that(err != nil && err.Error() == "parameter partitionKey cannot be empty", fmt.Sprintf("%s: %v", what, err))
	}
}

func replace(r *run) {
	table := r.newTable()
	key := at("p", "r")
	first := table.add(key.with("A", int32(1)).with("B", int32(1)))
	second := must(table.update(key.with("A", int32(2)), aztables.UpdateModeReplace, &first))
	that(first != second, "the ETag did not change")
	_, err := table.update(key.with("A", int32(3)), aztables.UpdateModeReplace, &first)
	fails(err, 412, "UpdateConditionNotSatisfied")
	got, etag := table.get("p", "r")
	equal(got, key.with("A", int32(2)), "entity after the stale replace")
	equal(etag, second, "ETag after the stale replace")
	third := must(table.update(key.with("C", int32(4)), aztables.UpdateModeReplace, nil))
	got, etag = table.get("p", "r")
	equal(got, key.with("C", int32(4)), "entity after the unconditional replace")
	equal(etag, third, "ETag after the unconditional replace")
	_, err = table.update(at("p", "none"), aztables.UpdateModeReplace, nil)
	fails(err, 404, "ResourceNotFound")
	if r.does("padded-etags") {
		// Other programs make an ETag of the Timestamp, always with seven digits.
		for etag = third; padded(etag) == etag; {
			etag = must(table.update(key.with("A", int32(6)), aztables.UpdateModeReplace, nil))
		}
		etag = padded(etag)
		must(table.update(key.with("A", int32(7)), aztables.UpdateModeReplace, &etag))
		got, _ = table.get("p", "r")
		equal(got, key.with("A", int32(7)), "entity after the replace")
	}
}

// Returns the same ETag with seven digits behind the seconds.
func padded(etag azcore.ETag) azcore.ETag {
	head, tail, _ := strings.Cut(string(etag), "Z'")
	seconds, fraction, _ := strings.Cut(head, ".")
	return azcore.ETag(seconds + "." + fraction + strings.Repeat("0", 7-len(fraction)) + "Z'" + tail)
}

func merge(r *run) {
	table := r.newTable()
	key := at("p", "r")
	first := table.add(key.with("A", int32(1)).with("B", aztables.EDMInt64(1)))
	change := key.with("A", "text").with("C", 2.5).with("B", nil)
	second := must(table.update(change, aztables.UpdateModeMerge, &first))
	that(first != second, "the ETag did not change")
	merged := key.with("A", "text").with("B", aztables.EDMInt64(1)).with("C", 2.5)
	equal(table.entity("p", "r"), merged, "entity after the merge")
	_, err := table.update(key.with("A", int32(3)), aztables.UpdateModeMerge, &first)
	fails(err, 412, "UpdateConditionNotSatisfied")
	equal(table.entity("p", "r"), merged, "entity after the stale merge")
	// Without options, the client merges.
	must(table.UpdateEntity(background, key.json(), nil))
	got, etag := table.get("p", "r")
	equal(got, merged, "entity after a merge without properties")
	that(etag != second, "a merge without properties kept the ETag")
	_, err = table.update(at("p", "none"), aztables.UpdateModeMerge, nil)
	fails(err, 404, "ResourceNotFound")
}

func upsert(r *run) {
	table := r.newTable()
	for _, mode := range aztables.PossibleUpdateModeValues() {
		key := at("p", string(mode))
		first := must(table.upsert(key.with("A", int32(1)).with("B", int32(1)), mode))
		equal(table.entity("p", string(mode)), key.with("A", int32(1)).with("B", int32(1)), "inserted by "+string(mode))
		second := must(table.upsert(key.with("A", int32(2)), mode))
		that(first != second, "the ETag did not change")
		expected := key.with("A", int32(2))
		if mode == aztables.UpdateModeMerge {
			expected = expected.with("B", int32(1))
		}
		got, etag := table.get("p", string(mode))
		equal(got, expected, "updated by "+string(mode))
		equal(etag, second, "ETag after the update by "+string(mode))
	}
}

func remove(r *run) {
	table := r.newTable()
	key := at("p", "r")
	first := table.add(key)
	second := must(table.update(key.with("A", int32(1)), aztables.UpdateModeReplace, nil))
	fails(table.delete("p", "r", &first), 412, "UpdateConditionNotSatisfied")
	equal(table.entity("p", "r"), key.with("A", int32(1)), "entity after the stale delete")
	ok(table.delete("p", "r", &second))
	_, err := table.GetEntity(background, "p", "r", nil)
	fails(err, 404, "ResourceNotFound")
	fails(table.delete("p", "r", nil), 404, "ResourceNotFound")
	table.add(key.with("B", int32(2)))
	equal(table.entity("p", "r"), key.with("B", int32(2)), "entity that was inserted again")
	must(table.DeleteEntity(background, "p", "r", nil))
	equal(must(table.list(nil)), nil, "entities after the delete")
}

func goroutines(r *run) {
	table := r.newTable()
	var group sync.WaitGroup
	errors := make([]error, 64)
	for n := range errors {
		group.Add(1)
		go func() {
			defer group.Done()
			sent := at(fmt.Sprint(n%4), fmt.Sprintf("%02d", n)).with("N", int32(n))
			if _, errors[n] = table.AddEntity(background, sent.json(), nil); errors[n] != nil {
				return
			}
			_, errors[n] = table.update(sent.with("M", int32(n)), aztables.UpdateModeMerge, nil)
		}()
	}
	group.Wait()
	for _, err := range errors {
		ok(err)
	}
	found := must(table.list(&aztables.ListEntitiesOptions{Top: to.Ptr[int32](7)}))
	equal(len(found), len(errors), "entities")
	for _, entity := range found {
		equal(fmt.Sprintf("%02d", entity["N"]), entity["RowKey"].(string), "N")
		equal(entity["M"], entity["N"], "M")
	}
}

func missing(r *run) {
	entity := at("p", "r").with("A", int32(1))
	nowhere := r.table(r.newName())
	refusals := map[string]error{}
	_, refusals["get"] = nowhere.GetEntity(background, "p", "r", nil)
	_, refusals["add"] = nowhere.AddEntity(background, entity.json(), nil)
	_, refusals["update"] = nowhere.update(entity, aztables.UpdateModeReplace, nil)
	_, refusals["merge"] = nowhere.update(entity, aztables.UpdateModeMerge, nil)
	_, refusals["upsert"] = nowhere.upsert(entity, aztables.UpdateModeReplace)
	refusals["delete"] = nowhere.delete("p", "r", nil)
	_, refusals["list"] = nowhere.list(nil)
	for _, err := range refusals {
		fails(err, 404, "TableNotFound")
	}

	table := r.newTable()
	_, err := table.GetEntity(background, "p", "r", nil)
	fails(err, 404, "ResourceNotFound")
	created := table.add(entity)
	_, err = table.AddEntity(background, entity.with("A", int32(2)).json(), nil)
	fails(err, 409, "EntityAlreadyExists")
	got, etag := table.get("p", "r")
	equal(got, entity, "entity after the conflict")
	equal(etag, created, "ETag after the conflict")
}
