package main

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func createAndDeleteTables(r *run) {
	name := r.newName()
	created := must(r.service.CreateTable(background, name, nil))
	equal(*created.TableName, name, "name of the created table")
	for _, again := range []string{name, strings.ToUpper(name)} {
		_, err := r.service.CreateTable(background, again, nil)
		fails(err, 409, "TableAlreadyExists")
	}
	equal(r.tablesBetween(name, name), []string{name}, "tables after the create")
	must(r.service.DeleteTable(background, name, nil))
	equal(r.tablesBetween(name, name), nil, "tables after the delete")
	_, err := r.service.DeleteTable(background, name, nil)
	fails(err, 404, "ResourceNotFound")

	table := r.table(name)
	must(table.CreateTable(background, nil))
	equal(must(table.list(nil)), nil, "entities of a table that was created again")
	must(table.Delete(background, nil))
	equal(r.tablesBetween(name, name), nil, "tables after the delete by a table client")
}

func listTables(r *run) {
	prefix := r.newName()
	var names []string
	for _, suffix := range "abcde" {
		name := prefix + string(suffix)
		must(r.service.CreateTable(background, name, nil))
		names = append(names, name)
		r.names = append(r.names, name)
	}
	equal(r.tablesBetween(names[1], names[3]), names[1:4], "range of names")

	filter := fmt.Sprintf("TableName ge '%s' and TableName le '%s'", names[0], names[4])
	options := aztables.ListTablesOptions{Filter: &filter, Top: to.Ptr[int32](2)}
	first := must(r.service.NewListTablesPager(&options).NextPage(background))
	equal(tableNames(first), names[:2], "first page of tables")
	options.NextTableName = first.NextTableName
	equal(tablePages(r.service, &options), [][]string{names[2:4], names[4:]}, "pages after the token")

	full := must(r.service.NewListTablesPager(&aztables.ListTablesOptions{
		Filter: &filter, Top: to.Ptr[int32](1), Format: to.Ptr(aztables.MetadataFormatFull),
	}).NextPage(background))
	metadata := string(full.Tables[0].Value)
	that(strings.Contains(metadata, fmt.Sprintf(`/Tables('%s')`, names[0])), "no id in "+metadata)
}

func invalidTableNames(r *run) {
	for name, code := range map[string]string{
		"has-dash":              "InvalidResourceName",
		"1digit":                "InvalidResourceName",
		"ab":                    "OutOfRangeInput",
		strings.Repeat("a", 64): "OutOfRangeInput",
	} {
		if !r.does("name-codes") {
			code = ""
		}
		_, err := r.service.CreateTable(background, name, nil)
		fails(err, 400, code)
	}
}
