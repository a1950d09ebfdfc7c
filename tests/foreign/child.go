// Writes, reads and copies entities with the official Go client, as the requests say.
//
// Usage: child CONNECTION_STRING
//
// A line of JSON on standard input is one request, a line on standard output its response. A property is [name, EDM type, string]:
// a double is the 16 digits of its bits, bytes are in Base64, a null has neither type nor string. In the mode "plain" an entity is
// an EDMEntity with values of Go types; in the mode "typed" it is JSON with the type of each property.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const annotation = "@odata.type"

type request struct {
	Do, Mode, Table, Row, To string
	Properties               [][3]*string
}

func doubleOf(text string) (float64, error) {
	bits, err := strconv.ParseUint(text, 16, 64)
	return math.Float64frombits(bits), err
}

func textOf(double float64) string {
	if math.IsNaN(double) {
		return "7ff8000000000000"
	}
	return fmt.Sprintf("%016x", math.Float64bits(double))
}

func plain(edmType, text string) (any, error) {
	switch edmType {
	case "Edm.Binary":
		bytes, err := base64.StdEncoding.DecodeString(text)
		return aztables.EDMBinary(bytes), err
	case "Edm.Boolean":
		return strconv.ParseBool(text)
	case "Edm.DateTime":
		at, err := time.Parse(time.RFC3339Nano, text)
		return aztables.EDMDateTime(at), err
	case "Edm.Double":
		return doubleOf(text)
	case "Edm.Guid":
		return aztables.EDMGUID(text), nil
	case "Edm.Int32":
		number, err := strconv.ParseInt(text, 10, 32)
		return int32(number), err
	case "Edm.Int64":
		number, err := strconv.ParseInt(text, 10, 64)
		return aztables.EDMInt64(number), err
	case "Edm.String":
		return text, nil
	}
	return nil, fmt.Errorf("unknown type: %s", edmType)
}

func typed(edmType, text string) (any, error) {
	switch edmType {
	case "Edm.Boolean":
		return strconv.ParseBool(text)
	case "Edm.Double":
		double, err := doubleOf(text)
		switch {
		case math.IsNaN(double):
			return "NaN", err
		case math.IsInf(double, 1):
			return "Infinity", err
		case math.IsInf(double, -1):
			return "-Infinity", err
		}
		return double, err
	case "Edm.Int32":
		return json.Number(text), nil
	}
	return text, nil
}

// A property as Go has it. A property without a value is absent.
func plainProperty(name string, value any) ([]string, error) {
	switch value := value.(type) {
	case aztables.EDMBinary:
		return []string{name, "Edm.Binary", base64.StdEncoding.EncodeToString(value)}, nil
	case bool:
		return []string{name, "Edm.Boolean", strconv.FormatBool(value)}, nil
	case aztables.EDMDateTime:
		return []string{name, "Edm.DateTime", time.Time(value).Format(time.RFC3339Nano)}, nil
	case float64:
		return []string{name, "Edm.Double", textOf(value)}, nil
	case aztables.EDMGUID:
		return []string{name, "Edm.Guid", string(value)}, nil
	case int32:
		return []string{name, "Edm.Int32", strconv.Itoa(int(value))}, nil
	case aztables.EDMInt64:
		return []string{name, "Edm.Int64", strconv.FormatInt(int64(value), 10)}, nil
	case string:
		return []string{name, "Edm.String", value}, nil
	case nil:
		return nil, nil
	}
	return nil, fmt.Errorf("%s is of the type %T", name, value)
}

// A property as JSON has it, with its annotation, which may be absent.
func typedProperty(name string, value any, edmType any) ([]string, error) {
	switch value := value.(type) {
	case bool:
		return []string{name, "Edm.Boolean", strconv.FormatBool(value)}, nil
	case float64:
		// Without an annotation, this is all that a program can know of a number.
		if edmType == nil && value == float64(int32(value)) && !(value == 0 && math.Signbit(value)) {
			return []string{name, "Edm.Int32", strconv.Itoa(int(value))}, nil
		}
		return []string{name, "Edm.Double", textOf(value)}, nil
	case string:
		switch edmType {
		case nil:
			return []string{name, "Edm.String", value}, nil
		case "Edm.Double":
			double, err := strconv.ParseFloat(value, 64)
			return []string{name, "Edm.Double", textOf(double)}, err
		}
		return []string{name, edmType.(string), value}, nil
	}
	return nil, fmt.Errorf("%s is of the type %T", name, value)
}

func write(table *aztables.Client, asked request) error {
	entity := map[string]any{"PartitionKey": "p", "RowKey": asked.Row}
	convert := plain
	if asked.Mode == "typed" {
		convert = typed
	}
	for _, property := range asked.Properties {
		name := *property[0]
		if property[1] == nil {
			entity[name] = nil
			continue
		}
		value, err := convert(*property[1], *property[2])
		if err != nil {
			return err
		}
		entity[name] = value
		if asked.Mode == "typed" {
			entity[name+annotation] = *property[1]
		}
	}
	if asked.Mode == "typed" {
		return add(table, entity)
	}
	return add(table, aztables.EDMEntity{
		Entity:     aztables.Entity{PartitionKey: "p", RowKey: asked.Row},
		Properties: without(entity, "PartitionKey", "RowKey"),
	})
}

func readPlain(value []byte) ([][]string, error) {
	var entity aztables.EDMEntity
	if err := json.Unmarshal(value, &entity); err != nil {
		return nil, err
	}
	properties := [][]string{}
	for name, value := range entity.Properties {
		property, err := plainProperty(name, value)
		if err != nil {
			return nil, err
		}
		if property != nil {
			properties = append(properties, property)
		}
	}
	return properties, nil
}

func readTyped(value []byte) ([][]string, error) {
	var entity map[string]any
	if err := json.Unmarshal(value, &entity); err != nil {
		return nil, err
	}
	properties := [][]string{}
	for name, value := range without(entity, "PartitionKey", "RowKey", "Timestamp") {
		if strings.HasPrefix(name, "odata.") || strings.HasSuffix(name, annotation) {
			continue
		}
		property, err := typedProperty(name, value, entity[name+annotation])
		if err != nil {
			return nil, err
		}
		properties = append(properties, property)
	}
	return properties, nil
}

func copyTo(table *aztables.Client, asked request, value []byte) error {
	if asked.Mode == "typed" {
		var entity map[string]any
		if err := json.Unmarshal(value, &entity); err != nil {
			return err
		}
		entity["RowKey"] = asked.To
		return add(table, entity)
	}
	var entity aztables.EDMEntity
	if err := json.Unmarshal(value, &entity); err != nil {
		return err
	}
	entity.RowKey = asked.To
	return add(table, entity)
}

func add(table *aztables.Client, entity any) error {
	marshaled, err := json.Marshal(entity)
	if err != nil {
		return err
	}
	_, err = table.AddEntity(context.Background(), marshaled, nil)
	return err
}

func without(entity map[string]any, names ...string) map[string]any {
	for _, name := range names {
		delete(entity, name)
	}
	return entity
}

func respond(table *aztables.Client, asked request) (any, error) {
	if asked.Do == "write" {
		return struct{}{}, write(table, asked)
	}
	response, err := table.GetEntity(context.Background(), "p", asked.Row, nil)
	if err != nil {
		return nil, err
	}
	if asked.Do == "copy" {
		return struct{}{}, copyTo(table, asked, response.Value)
	}
	read := readPlain
	if asked.Mode == "typed" {
		read = readTyped
	}
	properties, err := read(response.Value)
	return map[string]any{"properties": properties}, err
}

func run(connectionString string) error {
	service, err := aztables.NewServiceClientFromConnectionString(connectionString, &aztables.ClientOptions{
		ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	if err != nil {
		return err
	}
	lines := bufio.NewReader(os.Stdin)
	replies := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			return err
		}
		reply, err := respond(service.NewClient(asked.Table), asked)
		var refused *azcore.ResponseError
		if errors.As(err, &refused) {
			reply = map[string]any{"refused": []any{refused.StatusCode, refused.ErrorCode}}
		} else if err != nil {
			reply = map[string]any{"failed": err.Error()}
		}
		if err := replies.Encode(reply); err != nil {
			return err
		}
	}
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
