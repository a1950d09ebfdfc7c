//! The arguments of a tool, checked against its schema, so that an error names the argument and the
//! rule.

use rmcp::model::{JsonObject, Tool};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::error::AnyError;

/// A schema in the form that all hosts read: an argument may be absent instead of null, and there
/// are no others.
pub(super) fn tidy(schema: &JsonObject) -> JsonObject {
    let mut schema = schema.clone();
    schema.insert("additionalProperties".to_owned(), false.into());
    let properties = schema.get_mut("properties").and_then(Json::as_object_mut);
    for property in properties.into_iter().flat_map(JsonObject::values_mut) {
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        // The width of an integer in this program, and what an absent argument becomes.
        property.remove("format");
        property.remove("default");
        let first = property.get("type").and_then(|it| it.get(0)).cloned();
        if let Some(first) = first {
            property.insert("type".to_owned(), first);
        }
    }
    schema
}

/// The arguments without those that are null, if the schema of the tool allows them.
pub(super) fn checked(tool: &Tool, mut arguments: JsonObject) -> Result<Json, AnyError> {
    arguments.retain(|_, value| !value.is_null());
    let none = JsonObject::new();
    let known = tool
        .input_schema
        .get("properties")
        .and_then(Json::as_object);
    let known = known.unwrap_or(&none);
    for (name, value) in &arguments {
        let Some(rule) = known.get(name) else {
            let names: Vec<_> = known.keys().map(String::as_str).collect();
            let names = names.join(", ");
            return Err(format!("{} has no argument {name:?}, but {names}", tool.name).into());
        };
        check(name, value, rule)?;
    }
    let required = tool.input_schema.get("required").and_then(Json::as_array);
    let mut required = required.into_iter().flatten().filter_map(Json::as_str);
    match required.find(|name| !arguments.contains_key(*name)) {
        Some(name) => Err(format!("{} needs the argument {name:?}", tool.name).into()),
        None => Ok(Json::Object(arguments)),
    }
}

fn check(name: &str, value: &Json, rule: &Json) -> Result<(), AnyError> {
    let of_type = rule.get("type").and_then(Json::as_str).unwrap_or_default();
    let fits = match of_type {
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "array" => {
            let items = value.as_array();
            items.is_some_and(|items| items.iter().all(Json::is_string))
        }
        "object" => value.is_object(),
        _ => true,
    };
    if !fits {
        let what = match of_type {
            "integer" => "a number without sign and fraction",
            "array" => "an array of strings",
            "object" => "an object",
            _ => "a string",
        };
        return Err(format!("{name:?} is not {what}").into());
    }
    let bound = |bound| rule.get(bound).and_then(Json::as_u64);
    let number = value.as_u64().unwrap_or_default();
    match (bound("minimum"), bound("maximum")) {
        (Some(min), Some(max)) if !(min..=max).contains(&number) => {
            Err(format!("{name:?} is not between {min} and {max}").into())
        }
        _ => Ok(()),
    }
}

/// The arguments as those of a tool.
pub(super) fn read<T: DeserializeOwned>(arguments: Json) -> Result<T, AnyError> {
    Ok(serde_json::from_value(arguments)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::mcp::tools;

    #[test]
    fn a_schema_lists_the_arguments_of_a_tool_with_one_type_each() {
        let mut tools = tools::all();
        let query = tools.find(|it| it.name == tools::QUERY_ENTITIES);
        let schema = query.expect("there is this tool").schema_as_json_value();
        let types: Vec<_> = schema["properties"]
            .as_object()
            .expect("it has arguments")
            .iter()
            .map(|(name, rule)| format!("{name}: {}", rule["type"].as_str().unwrap_or("?")))
            .collect();
        let mut expected = [
            "table: string",
            "partition: string",
            "row: string",
            "rows: string",
            "rowPrefix: string",
            "filter: string",
            "select: array",
            "take: integer",
            "continue: string",
        ];
        expected.sort_unstable();
        let mut types: Vec<_> = types.iter().map(String::as_str).collect();
        types.sort_unstable();
        assert_eq!(types, expected);
        assert_eq!(schema["required"], json!(["table"]));
        assert_eq!(schema["additionalProperties"], json!(false));
    }

    #[test]
    fn an_argument_that_is_not_valid_is_named() {
        let mut tools = tools::all();
        let query = tools.find(|it| it.name == tools::QUERY_ENTITIES);
        let query = query.expect("there is this tool");
        for (arguments, problem) in [
            (json!({}), "needs the argument \"table\""),
            (json!({"table": null}), "needs the argument \"table\""),
            (json!({"table": 7}), "\"table\" is not a string"),
            (
                json!({"table": "T", "partitionKey": "a"}),
                "no argument \"partitionKey\", but",
            ),
            (
                json!({"table": "T", "take": "5"}),
                "\"take\" is not a number",
            ),
            (
                json!({"table": "T", "take": 0}),
                "\"take\" is not between 1 and 1000",
            ),
            (
                json!({"table": "T", "take": -1}),
                "\"take\" is not a number",
            ),
            (
                json!({"table": "T", "select": "Age"}),
                "\"select\" is not an array of strings",
            ),
            (
                json!({"table": "T", "select": [1]}),
                "\"select\" is not an array of strings",
            ),
        ] {
            let arguments = arguments.as_object().expect("it is an object").clone();
            let error = checked(&query, arguments).expect_err("it is not valid");
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
}
