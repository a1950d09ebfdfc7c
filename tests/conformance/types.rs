//! The eight EDM types: how they are written, and how they come back.

use serde_json::Value as Json;

use crate::run::{NO_METADATA, Suite, choice, rule, same};

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    // What is sent, the value that comes back, and its annotation.
    for (index, (rule, sent, value, annotation)) in [
        ("5.3 text", r#""v":"text""#, r#""text""#, None),
        ("5.3 an empty text", r#""v":"""#, r#""""#, None),
        ("5.3 blanks of a text", r#""v":"  x  ""#, r#""  x  ""#, None),
        ("5.3 every character", r#""v":"\u0001\n\t\"\\\/ é 😀 \uE000""#, r#""\u0001\n\t\"\\/ é 😀 \uE000""#, None),
        ("5.3 text with its type", r#""v":"5","v@odata.type":"Edm.String""#, r#""5""#, None),
        ("5.3 true", r#""v":true"#, "true", None),
        ("5.3 a Boolean as text of any case", r#""v":"False","v@odata.type":"Edm.Boolean""#, "false", None),
        ("5.3 a Boolean as text", r#""v":"false","v@odata.type":"Edm.Boolean""#, "false", None),
        ("5.3 an Int32", r#""v":-2147483648"#, "-2147483648", None),
        ("5.3 an Int32 as text", r#""v":"23","v@odata.type":"Edm.Int32""#, "23", None),
        ("5.3 an Int64", r#""v":"9223372036854775807","v@odata.type":"Edm.Int64""#, r#""9223372036854775807""#, Some("Edm.Int64")),
        ("5.3 a small Int64", r#""v":"255","v@odata.type":"Edm.Int64""#, r#""255""#, Some("Edm.Int64")),
        ("5.3 a Double", r#""v":3.1"#, "3.1", None),
        ("5.3 a Double that is whole", r#""v":1.0"#, "1.0", None),
        ("5.3 a Double in a number without point", r#""v":5,"v@odata.type":"Edm.Double""#, "5.0", None),
        ("5.3 a Double as text", r#""v":"1.5","v@odata.type":"Edm.Double""#, "1.5", None),
        ("5.3 NaN", r#""v":"NaN","v@odata.type":"Edm.Double""#, r#""NaN""#, Some("Edm.Double")),
        ("5.3 infinity", r#""v":"-Infinity","v@odata.type":"Edm.Double""#, r#""-Infinity""#, Some("Edm.Double")),
        ("5.3 a large Double", r#""v":1e300"#, "1E+300", None),
        ("5.3 the precision of a Double", r#""v":0.1"#, "0.1", None),
        ("F.19 a Double of seventeen digits", r#""v":0.3333333333333333"#, "0.33333333333333331", None),
        ("F.19 the smallest Double", r#""v":5e-324"#, "4.94065645841247E-324", None),
        ("F.1 an integer beyond Int32", r#""v":2147483648"#, "2147483648.0", None),
        ("F.1 a negative integer beyond Int32", r#""v":-2147483649"#, "-2147483649.0", None),
        ("F.1 the time of JavaScript", r#""v":1498179600055"#, "1498179600055.0", None),
        ("F.1 an integer beyond 2⁵³", r#""v":9007199254740993"#, "9007199254740992.0", None),
        ("F.1 an integer beyond Int64", r#""v":9223372036854775808000"#, "9.2233720368547758E+21", None),
        ("0.1 a DateTime without its trailing zeros", r#""v":"2020-01-01T01:02:00.0000000Z","v@odata.type":"Edm.DateTime""#, r#""2020-01-01T01:02:00Z""#, Some("Edm.DateTime")),
        ("0.1 a DateTime of 100 ns", r#""v":"2020-01-01T01:02:03.1234567Z","v@odata.type":"Edm.DateTime""#, r#""2020-01-01T01:02:03.1234567Z""#, Some("Edm.DateTime")),
        ("D the digits of a DateTime after the seventh are dropped", r#""v":"2020-01-01T01:02:03.123456789Z","v@odata.type":"Edm.DateTime""#, r#""2020-01-01T01:02:03.1234567Z""#, Some("Edm.DateTime")),
        ("5.3 a DateTime without an offset", r#""v":"2008-07-10T00:00:00","v@odata.type":"Edm.DateTime""#, r#""2008-07-10T00:00:00Z""#, Some("Edm.DateTime")),
        ("5.1 the first DateTime", r#""v":"1601-01-01T00:00:00Z","v@odata.type":"Edm.DateTime""#, r#""1601-01-01T00:00:00Z""#, Some("Edm.DateTime")),
        ("5.1 the last DateTime", r#""v":"9999-12-31T23:59:59.9999999Z","v@odata.type":"Edm.DateTime""#, r#""9999-12-31T23:59:59.9999999Z""#, Some("Edm.DateTime")),
        ("5.3 a Guid", r#""v":"c9da6455-213d-42c9-9a79-3e9149a57833","v@odata.type":"Edm.Guid""#, r#""c9da6455-213d-42c9-9a79-3e9149a57833""#, Some("Edm.Guid")),
        ("5.3 a Binary", r#""v":"YmluYXJ5","v@odata.type":"Edm.Binary""#, r#""YmluYXJ5""#, Some("Edm.Binary")),
        ("5.3 an empty Binary", r#""v":"","v@odata.type":"Edm.Binary""#, r#""""#, Some("Edm.Binary")),
    ]
    .into_iter()
    .enumerate()
    {
        rule!(suite, rule, {
            suite.insert(&table, &format!(r#""PartitionKey":"p","RowKey":"{index}",{sent}"#)).await?;
            let line = format!("GET /{table}(PartitionKey='p',RowKey='{index}')");
            let response = suite.done(&line, &[], "").await?;
            let json = response.json();
            same("type", &json["v@odata.type"].as_str(), &annotation)?;
            let expected: Json = serde_json::from_str(value).unwrap();
            same("value", &json["v"], &expected)?;
            // Whether it is a whole number shows in the text alone.
            if let Some((_, text)) = response.body.split_once(r#""v":"#)
                && expected.is_number()
            {
                same("text", &text.trim_end_matches('}').split(',').next(), &Some(value))?;
            }
            let response = suite.done(&line, &[NO_METADATA], "").await?;
            same("value without metadata", &response.json()["v"], &expected)?;
            same("type without metadata", &response.json()["v@odata.type"], &Json::Null)
        });
    }
    for (rule, sent, value) in [
        ("5.3 an Int64 as a number", r#""v":5,"v@odata.type":"Edm.Int64""#, r#""5""#),
        ("5.3 a Guid in upper case", r#""v":"C9DA6455-213D-42C9-9A79-3E9149A57833","v@odata.type":"Edm.Guid""#, r#""c9da6455-213d-42c9-9a79-3e9149a57833""#),
        ("5.3 a DateTime with an offset", r#""v":"2020-01-01T01:00:00+01:00","v@odata.type":"Edm.DateTime""#, r#""2020-01-01T00:00:00Z""#),
        ("5.3 a null of any type", r#""v":null,"v@odata.type":"Edm.Int32","w":1"#, "null"),
    ] {
        choice!(suite, rule, {
            suite.done(&format!("PUT /{table}(PartitionKey='p',RowKey='choice')"), &[], &format!("{{{sent}}}")).await?;
            let expected: Json = serde_json::from_str(value).unwrap();
            same("value", &suite.entity(&table, "p", "choice").await?["v"], &expected)
        });
    }
    for (rule, sent, code) in [
        ("5.1 a malformed Boolean", r#""v":"not a bool","v@odata.type":"Edm.Boolean""#, "InvalidInput"),
        ("5.1 a malformed Int64", r#""v":"x","v@odata.type":"Edm.Int64""#, "InvalidInput"),
        ("5.1 an Int64 that is too large", r#""v":"9223372036854775808","v@odata.type":"Edm.Int64""#, "InvalidInput"),
        ("5.1 a Double that is too large", r#""v":"1.797693134862316e308","v@odata.type":"Edm.Double""#, "InvalidInput"),
        ("5.1 a malformed Guid", r#""v":"c9da6455","v@odata.type":"Edm.Guid""#, "InvalidInput"),
        ("5.1 a malformed DateTime", r#""v":"yesterday","v@odata.type":"Edm.DateTime""#, "InvalidInput"),
        ("5.1 a malformed Binary", r#""v":"%%%","v@odata.type":"Edm.Binary""#, "InvalidInput"),
        ("5.1 an unknown type", r#""v":"x","v@odata.type":"Edm.Byte""#, "InvalidInput"),
    ] {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"bad",{sent}}}"#);
        suite.refusals(&table, &[(rule, "POST /TABLE", &[], &body, 400, code)]).await;
    }
    for (rule, sent, code) in [
        ("5.1 a DateTime before 1601", r#""v":"0001-01-01T00:00:00Z","v@odata.type":"Edm.DateTime""#, "OutOfRangeInput"),
    ] {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"bad",{sent}}}"#);
        suite.refusals_by_choice(&table, &[(rule, "POST /TABLE", &[], &body, 400, code)]).await;
    }
}
