// Expectations, and a table client that stops a check when a call fails.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var background = context.Background()

// The properties of an entity, with its keys.
type entity map[string]any

func at(partition, row string) entity {
	return entity{"PartitionKey": partition, "RowKey": row}
}

func (e entity) with(name string, value any) entity {
	entity := entity{name: value}
	for name, value := range e {
		if _, present := entity[name]; !present {
			entity[name] = value
		}
	}
	return entity
}

// An EDMEntity doubles the quotes of its own keys, but not those of keys among its properties.
func (e entity) json() []byte {
	return must(json.Marshal(aztables.EDMEntity{Properties: e}))
}

func decode(value []byte) (entity, aztables.EDMEntity) {
	var read aztables.EDMEntity
	if err := json.Unmarshal(value, &read); err != nil {
		panic(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(value, &keys); err != nil {
		panic(err)
	}
	entity := entity(read.Properties)
	for _, name := range []string{"PartitionKey", "RowKey"} {
		if key, present := keys[name]; present {
			entity[name] = key
		}
	}
	return entity, read
}

type table struct {
	*aztables.Client
	name string
}

func (t table) add(e entity) azcore.ETag {
	return must(t.AddEntity(background, e.json(), nil)).ETag
}

func (t table) get(partition, row string) (entity, azcore.ETag) {
	response := must(t.GetEntity(background, partition, row, nil))
	entity, _ := decode(response.Value)
	return entity, response.ETag
}

func (t table) entity(partition, row string) entity {
	entity, _ := t.get(partition, row)
	return entity
}

func (t table) update(e entity, mode aztables.UpdateMode, condition *azcore.ETag) (azcore.ETag, error) {
	options := &aztables.UpdateEntityOptions{IfMatch: condition, UpdateMode: mode}
	response, err := t.UpdateEntity(background, e.json(), options)
	return response.ETag, err
}

func (t table) upsert(e entity, mode aztables.UpdateMode) (azcore.ETag, error) {
	response, err := t.UpsertEntity(background, e.json(), &aztables.UpsertEntityOptions{UpdateMode: mode})
	return response.ETag, err
}

func (t table) delete(partition, row string, condition *azcore.ETag) error {
	_, err := t.DeleteEntity(background, partition, row, &aztables.DeleteEntityOptions{IfMatch: condition})
	return err
}

func (t table) pages(options *aztables.ListEntitiesOptions) ([][]entity, error) {
	var pages [][]entity
	pager := t.NewListEntitiesPager(options)
	for pager.More() {
		response, err := pager.NextPage(background)
		if err != nil {
			return nil, err
		}
		pages = append(pages, entities(response))
	}
	return pages, nil
}

func (t table) list(options *aztables.ListEntitiesOptions) ([]entity, error) {
	pages, err := t.pages(options)
	var all []entity
	for _, page := range pages {
		all = append(all, page...)
	}
	return all, err
}

func (t table) find(filter string) []entity {
	return must(t.list(&aztables.ListEntitiesOptions{Filter: &filter}))
}

func entities(page aztables.ListEntitiesResponse) []entity {
	var all []entity
	for _, value := range page.Entities {
		entity, _ := decode(value)
		all = append(all, entity)
	}
	return all
}

func rowKeys(entities []entity) string {
	var keys []string
	for _, entity := range entities {
		keys = append(keys, entity["RowKey"].(string))
	}
	return strings.Join(keys, " ")
}

// The names of the tables of each page.
func tablePages(service *aztables.ServiceClient, options *aztables.ListTablesOptions) [][]string {
	var pages [][]string
	pager := service.NewListTablesPager(options)
	for pager.More() {
		pages = append(pages, tableNames(must(pager.NextPage(background))))
	}
	return pages
}

func tableNames(page aztables.ListTablesResponse) []string {
	var names []string
	for _, table := range page.Tables {
		names = append(names, *table.Name)
	}
	return names
}

// A string as a literal of a filter.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

func must[T any](value T, err error) T {
	ok(err)
	return value
}

func ok(err error) {
	if err != nil {
		panic(err)
	}
}

func equal[T any](actual, expected T, what string) {
	// A slice without elements equals nil.
	empty := func(value T) bool {
		reflected := reflect.ValueOf(value)
		return reflected.Kind() == reflect.Slice && reflected.Len() == 0
	}
	if !reflect.DeepEqual(actual, expected) && !(empty(actual) && empty(expected)) {
		panic(fmt.Sprintf("%s: expected %#v, got %#v", what, expected, actual))
	}
}

func that(holds bool, what string) {
	if !holds {
		panic(what)
	}
}

// Checks that the service refused the call with this status and, unless it is empty, this code.
func fails(err error, status int, code string) {
	var refused *azcore.ResponseError
	if !errors.As(err, &refused) {
		panic(fmt.Sprintf("expected %d %s, got %v", status, code, err))
	}
	if refused.StatusCode != status || (code != "" && refused.ErrorCode != code) {
		panic(fmt.Sprintf("expected %d %s, got %d %s", status, code, refused.StatusCode, refused.ErrorCode))
	}
}

// As `fails`, without the code on Azurite.
func (r *run) refused(err error, status int, code string) {
	if r.azurite {
		code = ""
	}
	fails(err, status, code)
}
