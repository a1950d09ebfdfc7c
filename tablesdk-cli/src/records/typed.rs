//! Texts with a type: the value that each of them is. The JSON of the service is made of them, so
//! that they are read and refused as all other values are.

use tablesdk::Value;
use tablesdk_protocol::wire::json::{PropertyProblem, read_entity};

/// Reads the text of a value of a type, such as `Edm.Int64`. Bytes are in Base64.
///
/// ```
/// use tablesdk::Value;
/// use tablesdk_cli::records::typed_value;
///
/// assert_eq!(typed_value("Edm.Int64", "9007199254740993"), Ok(Value::Int64(9_007_199_254_740_993)));
/// let problem = typed_value("Edm.Int32", "1.5").unwrap_err();
/// assert_eq!(problem.to_string(), "the value is not of type Edm.Int32");
/// ```
///
/// # Errors
///
/// When the type is unknown, or does not allow the text.
pub fn typed_value(edm_type: &str, text: &str) -> Result<Value, PropertyProblem> {
    let mut json = Object::default();
    json.member(&annotation(NAME), edm_type);
    json.member(NAME, text);
    let json = json.finish();
    let entity = read_entity(&json).ok();
    let property = entity.as_ref().and_then(|entity| entity.property(NAME));
    let value = property.map(|property| property.to_value().map_err(|error| error.problem()));
    // The object always has the property, and it is not null.
    value.transpose()?.flatten().ok_or(PropertyProblem::Nested)
}

/// The name of the member with the type of a property.
pub(super) fn annotation(name: &str) -> String {
    format!("{name}@odata.type")
}

/// A JSON object that is written member by member.
pub(super) struct Object(Vec<u8>);

impl Default for Object {
    fn default() -> Self {
        Self(vec![b'{'])
    }
}

impl Object {
    pub(super) fn member(&mut self, name: &str, text: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.string(name);
        self.0.push(b':');
        self.string(text);
    }

    fn string(&mut self, text: &str) {
        // To write a string to memory does not fail.
        let _ = serde_json::to_writer(&mut self.0, text);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

const NAME: &str = "Value";
