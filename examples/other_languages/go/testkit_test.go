package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var (
	kit        *Kit
	background = context.Background()
)

func TestMain(m *testing.M) {
	var err error
	if kit, err = Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// The client of a new table, on a server without other data. Its back-off is short; it waits as long as Retry-After says.
func orders(t *testing.T) *aztables.Client {
	kit.Reset(t)
	service, err := aztables.NewServiceClientFromConnectionString(kit.ConnectionString, &aztables.ClientOptions{
		ClientOptions: policy.ClientOptions{
			Retry: policy.RetryOptions{RetryDelay: time.Millisecond},
			// The client sends no x-ms-client-request-id by default. With one, the journal counts attempts.
			PerCallPolicies: []policy.Policy{runtime.NewRequestIDPolicy()},
		},
	})
	check(t, err)
	_, err = service.CreateTable(background, "Orders", nil)
	check(t, err)
	return service.NewClient("Orders")
}

func insert(t *testing.T, table *aztables.Client, id string) error {
	entity, err := json.Marshal(aztables.EDMEntity{
		Entity:     aztables.Entity{PartitionKey: "open", RowKey: id},
		Properties: map[string]any{"Cents": aztables.EDMInt64(250)},
	})
	check(t, err)
	_, err = table.AddEntity(background, entity, nil)
	return err
}

func get(t *testing.T, table *aztables.Client, id string) aztables.EDMEntity {
	response, err := table.GetEntity(background, "open", id, nil)
	check(t, err)
	var entity aztables.EDMEntity
	check(t, json.Unmarshal(response.Value, &entity))
	return entity
}

func TestTheClientWaitsAndRetriesWhenTheServiceIsBusy(t *testing.T) {
	table := orders(t)
	hits := kit.Inject(t, Rule{
		Operations: []string{"InsertEntity"},
		Times:      2,
		Fault:      map[string]any{"kind": "error", "code": "ServerBusy", "retryAfterSeconds": 1},
	})
	check(t, insert(t, table, "1"))
	equal(t, hits(), 2)
	requests := kit.Requests(t, "InsertEntity")
	equal(t, len(requests), 3)
	for n, status := range []int{503, 503, 201} {
		equal(t, requests[n].Attempt, n+1)
		equal(t, *requests[n].Status, status)
	}
	equal(t, requests[0].ErrorCode, "ServerBusy")
	for n := range 2 {
		if waited := requests[n+1].Time.Sub(requests[n].Time); waited < time.Second {
			t.Errorf("the client waited %s", waited)
		}
	}
}

// The client retries an insert whose response was lost. The retry finds the entity of the first attempt, and the client
// returns that conflict: to the caller it looks as if another program had inserted the entity. A program that must know reads
// the entity, or writes with UpsertEntity, which can be repeated.
func TestAnInsertWhoseResponseIsLostFailsWithAConflict(t *testing.T) {
	table := orders(t)
	kit.Inject(t, Rule{Operations: []string{"InsertEntity"}, Nth: 1, Fault: map[string]any{"kind": "loseResponse"}})
	refused(t, insert(t, table, "1"), 409, "EntityAlreadyExists")
	equal(t, get(t, table, "1").Properties["Cents"], any(aztables.EDMInt64(250)))
	requests := kit.Requests(t, "InsertEntity")
	equal(t, len(requests), 2)
	equal(t, requests[0].Fault != nil, true)
	equal(t, requests[1].Attempt, 2)
	equal(t, *requests[1].Status, 409)
}

func TestAnUpsertWhoseResponseIsLostSucceeds(t *testing.T) {
	table := orders(t)
	hits := kit.Inject(t, Rule{Table: "Orders", Nth: 1, Fault: map[string]any{"kind": "loseResponse"}})
	entity := []byte(`{"PartitionKey":"open","RowKey":"1","Cents":250}`)
	_, err := table.UpsertEntity(background, entity, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	check(t, err)
	equal(t, hits(), 1)
	equal(t, len(kit.Requests(t, "InsertOrReplaceEntity")), 2)
}

func TestASignatureExpiresWhenTheClockIsMoved(t *testing.T) {
	table := orders(t)
	check(t, insert(t, table, "1"))
	url, err := table.GetTableSASURL(aztables.SASPermissions{Read: true}, time.Time{}, time.Now().UTC().Add(time.Hour))
	check(t, err)
	// The client omits the slash before the name of the table.
	url = strings.Replace(url, kit.Endpoint, kit.Endpoint+"/", 1)
	reader, err := aztables.NewClientWithNoCredential(url, nil)
	check(t, err)
	equal(t, get(t, reader, "1").RowKey, "1")
	kit.Advance(t, 2*time.Hour)
	_, err = reader.GetEntity(background, "open", "1", nil)
	refused(t, err, 403, "AuthenticationFailed")
}

func TestTimestampsFollowTheClock(t *testing.T) {
	table := orders(t)
	check(t, insert(t, table, "1"))
	kit.Advance(t, time.Minute)
	check(t, insert(t, table, "2"))
	first, second := time.Time(get(t, table, "1").Timestamp), time.Time(get(t, table, "2").Timestamp)
	if passed := second.Sub(first); passed < time.Minute {
		t.Errorf("%s passed", passed)
	}
}

func TestASnapshotIsRestored(t *testing.T) {
	table := orders(t)
	check(t, insert(t, table, "1"))
	before := kit.Dump(t)
	equal(t, before, "Orders\nOrders(PartitionKey='open',RowKey='1')\n  Cents = 250L\n")
	restore := kit.Snapshot(t)
	check(t, insert(t, table, "2"))
	_, err := table.DeleteEntity(background, "open", "1", nil)
	check(t, err)
	restore()
	equal(t, kit.Dump(t), before)
}

func TestATestStartsWithoutTablesOfAnother(t *testing.T) {
	table := orders(t)
	check(t, insert(t, table, "1"))
	kit.Reset(t)
	equal(t, kit.Dump(t), "")
	refused(t, insert(t, table, "1"), 404, "TableNotFound")
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, status int, code string) {
	t.Helper()
	var response *azcore.ResponseError
	if !errors.As(err, &response) || response.StatusCode != status || response.ErrorCode != code {
		t.Fatalf("expected %d %s, got %v", status, code, err)
	}
}

func equal[T comparable](t *testing.T, actual, expected T) {
	t.Helper()
	if actual != expected {
		t.Errorf("expected %v, got %v", expected, actual)
	}
}
