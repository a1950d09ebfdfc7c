// Package testkit starts tablesdk-server for the tests of a package, and injects faults, reads the recorded requests, moves the
// clock and restores snapshots over the server's HTTP interface. GET /test/openapi.json describes that interface. The tests of
// this package show its use:
//
//	TABLESDK_SERVER=/path/to/tablesdk-server go test
package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Kit is a server. Its tests share it, so they do not run in parallel.
type Kit struct {
	ConnectionString string
	Endpoint         string
	Test             string    // the URL of the kit
	server           *exec.Cmd // keeps its standard input open
}

// Rule selects requests, and injects a fault into them. A zero value is a condition that is not set.
type Rule struct {
	Operations []string       `json:"operations,omitempty"`
	Table      string         `json:"table,omitempty"`
	Nth        int            `json:"nth,omitempty"`
	Times      int            `json:"times,omitempty"`
	Fault      map[string]any `json:"fault"`
}

// Request is a recorded request.
type Request struct {
	Operation string
	Table     string
	Attempt   int
	Status    *int // nil if there was no response
	ErrorCode string
	Time      time.Time
	Fault     *InjectedFault // nil if there was none
}

// InjectedFault is the fault of a request: the id of its rule, and what it did.
type InjectedFault struct {
	Rule int
	Text string
}

// Start runs the program that TABLESDK_SERVER names, or else tablesdk-server in PATH.
func Start() (*Kit, error) {
	program := os.Getenv("TABLESDK_SERVER")
	if program == "" {
		program = "tablesdk-server"
	}
	// The server ends with its standard input, which the system closes when this process ends.
	kit := &Kit{server: exec.Command(program, "--test", "--exit-with-stdin")}
	kit.server.Stderr = os.Stderr
	_, err := kit.server.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := kit.server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := kit.server.Start(); err != nil {
		return nil, err
	}
	// One line of JSON: the server accepts connections.
	if err := json.NewDecoder(output).Decode(kit); err != nil {
		return nil, fmt.Errorf("%s did not start: %w", program, err)
	}
	return kit, nil
}

// Reset deletes tables, faults, snapshots and recorded requests, and lets the clock run.
func (k *Kit) Reset(t testing.TB) {
	k.call(t, "POST", "/reset", nil, nil)
}

// Inject adds a rule, and returns a function that counts the requests that it has hit.
func (k *Kit) Inject(t testing.TB, rule Rule) (hits func() int) {
	var fault struct{ ID int }
	k.call(t, "POST", "/faults", rule, &fault)
	return func() int {
		var got struct{ Hits int }
		k.call(t, "GET", fmt.Sprintf("/faults/%d", fault.ID), nil, &got)
		return got.Hits
	}
}

// Requests returns the recorded requests of an operation.
func (k *Kit) Requests(t testing.TB, operation string) []Request {
	var all, found []Request
	k.call(t, "GET", "/requests", nil, &all)
	for _, request := range all {
		if request.Operation == operation {
			found = append(found, request)
		}
	}
	return found
}

// Advance moves the clock of the server forward.
func (k *Kit) Advance(t testing.TB, by time.Duration) {
	k.call(t, "POST", "/clock", map[string]any{"kind": "advance", "seconds": by.Seconds()}, nil)
}

// Snapshot keeps all tables, and returns a function that restores them.
func (k *Kit) Snapshot(t testing.TB) (restore func()) {
	var snapshot struct{ ID int }
	k.call(t, "POST", "/snapshots", nil, &snapshot)
	return func() {
		k.call(t, "POST", fmt.Sprintf("/snapshots/%d/restore", snapshot.ID), nil, nil)
	}
}

// Dump returns all tables as sorted text, without timestamps.
func (k *Kit) Dump(t testing.TB) (text string) {
	k.call(t, "GET", "/dump", nil, &text)
	return text
}

func (k *Kit) call(t testing.TB, method, path string, body, result any) {
	t.Helper()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequest(method, k.Test+path, bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	received, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, received)
	}
	if text, ok := result.(*string); ok {
		*text = string(received)
	} else if err == nil && result != nil {
		err = json.Unmarshal(received, result)
	}
	if err != nil {
		t.Fatal(err)
	}
}
