//! Query Entities: filters, projections and pages.

use serde_json::json;

use crate::batch::{MULTIPART, batch_of, part};
use crate::run::{NO_METADATA, Suite, choice, holds, refused, rule, same};
use crate::sign::percent;

/// A value of each type: its name, itself in a body, and the literal of a filter.
const TYPES: [(&str, &str, &str); 8] = [
    ("Int32", r#""v":5"#, "5"),
    ("Int64", r#""v":"5","v@odata.type":"Edm.Int64""#, "5L"),
    ("Double", r#""v":5.5"#, "5.5"),
    ("String", r#""v":"five""#, "'five'"),
    ("Boolean", r#""v":true"#, "true"),
    (
        "DateTime",
        r#""v":"2020-01-01T01:02:03.1234567Z","v@odata.type":"Edm.DateTime""#,
        "datetime'2020-01-01T01:02:03.1234567Z'",
    ),
    (
        "Guid",
        r#""v":"c9da6455-213d-42c9-9a79-3e9149a57833","v@odata.type":"Edm.Guid""#,
        "guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
    ),
    ("Binary", r#""v":"YmluYXJ5","v@odata.type":"Edm.Binary""#, "X'62696e617279'"),
];

pub(crate) async fn check(suite: &mut Suite) {
    comparisons(suite).await;
    orders(suite).await;
    grammar(suite).await;
    types(suite).await;
    spellings(suite).await;
    projections(suite).await;
    pages(suite).await;
    refusals(suite).await;
}

async fn found(suite: &Suite, table: &str, filter: &str) -> Result<String, String> {
    let rows = suite.rows(table, &format!("$filter={}", percent(filter))).await?;
    Ok(rows.join(" "))
}

/// Every operator on every type, and on literals of every other type.
async fn comparisons(suite: &mut Suite) {
    let table = suite.table().await;
    for (name, member, _) in TYPES {
        let members = format!(r#""PartitionKey":"p","RowKey":"{name}",{member}"#);
        suite.insert(&table, &members).await.unwrap();
    }
    for (literal_type, _, literal) in TYPES {
        for (operator, expected) in [("eq", true), ("ne", false), ("gt", false), ("ge", true), ("lt", false), ("le", true)] {
            rule!(suite, &format!("6.2 {literal_type} {operator} its own literal"), {
                let filter = format!("RowKey eq '{literal_type}' and v {operator} {literal}");
                let expected = if expected { literal_type } else { "" };
                same("rows", &found(suite, &table, &filter).await?, &expected)
            });
        }
        for (property_type, ..) in TYPES {
            // Integers are promoted, which has its own rules.
            let numbers = ["Int32", "Int64", "Double"];
            if property_type == literal_type || numbers.contains(&property_type) && numbers.contains(&literal_type) {
                continue;
            }
            choice!(suite, &format!("6.2 {property_type} is less than a literal of type {literal_type}"), {
                for (operator, expected) in [("eq", false), ("ne", true), ("gt", false), ("ge", false), ("lt", true), ("le", true)] {
                    let filter = format!("RowKey eq '{property_type}' and v {operator} {literal}");
                    let expected = if expected { property_type } else { "" };
                    same(operator, &found(suite, &table, &filter).await?, &expected)?;
                }
                Ok(())
            });
        }
    }
    let promotion = suite.table().await;
    for member in [
        r#""RowKey":"int","v":3"#,
        r#""RowKey":"long","v":"3","v@odata.type":"Edm.Int64""#,
        r#""RowKey":"double","v":3.0"#,
    ] {
        suite.insert(&promotion, &format!(r#""PartitionKey":"p",{member}"#)).await.unwrap();
    }
    for (filter, expected) in [
        ("RowKey eq 'long' and v eq 3", "long"),
        ("RowKey eq 'double' and v eq 3", "double"),
        ("RowKey eq 'double' and v eq 3L", "double"),
        ("RowKey eq 'int' and v eq 3L", ""),
        ("RowKey eq 'long' and v eq 3.0", ""),
        ("RowKey eq 'int' and v eq 3.0", ""),
        ("RowKey eq 'long' and v lt 4", "long"),
        ("RowKey eq 'double' and v gt 2", "double"),
    ] {
        choice!(suite, &format!("6.2 integers are promoted to the wider type: {filter}"), {
            same("rows", &found(suite, &promotion, filter).await?, &expected)
        });
    }
}

/// The order of values within a type.
async fn orders(suite: &mut Suite) {
    let table = suite.table().await;
    for (row, member) in [
        ("s1", r#""s":"""#),
        ("s2", r#""s":"A""#),
        ("s3", r#""s":"a""#),
        ("s4", r#""s":"ab""#),
        ("s5", r#""s":"é""#),
        ("s6", r#""s":"😀""#),
        ("s7", r#""s":"\uE000""#),
        ("d1", r#""d":-1.5"#),
        ("d2", r#""d":-0.0"#),
        ("d3", r#""d":1E300"#),
        ("d4", r#""d":"Infinity","d@odata.type":"Edm.Double""#),
        ("d5", r#""d":"NaN","d@odata.type":"Edm.Double""#),
        ("l1", r#""l":"-9223372036854775808","l@odata.type":"Edm.Int64""#),
        ("l2", r#""l":"9007199254740993","l@odata.type":"Edm.Int64""#),
        ("l3", r#""l":"9223372036854775807","l@odata.type":"Edm.Int64""#),
        ("t1", r#""t":"1601-01-01T00:00:00Z","t@odata.type":"Edm.DateTime""#),
        ("t2", r#""t":"2020-01-01T00:00:00.0000001Z","t@odata.type":"Edm.DateTime""#),
        ("t3", r#""t":"2020-01-01T00:00:00.0000002Z","t@odata.type":"Edm.DateTime""#),
        ("b1", r#""b":false"#),
        ("b2", r#""b":true"#),
        ("g1", r#""g":"00000000-0000-0000-0000-000000000001","g@odata.type":"Edm.Guid""#),
        ("g2", r#""g":"10000000-0000-0000-0000-000000000000","g@odata.type":"Edm.Guid""#),
        ("x1", r#""x":"","x@odata.type":"Edm.Binary""#),
        ("x2", r#""x":"AA==","x@odata.type":"Edm.Binary""#),
        ("x3", r#""x":"AAA=","x@odata.type":"Edm.Binary""#),
        ("x4", r#""x":"/w==","x@odata.type":"Edm.Binary""#),
    ] {
        let members = format!(r#""PartitionKey":"p","RowKey":"{row}",{member}"#);
        suite.insert(&table, &members).await.unwrap();
    }
    for (filter, expected) in [
        ("s ge 'a' and s lt 'b'", "s3 s4"),
        ("s eq ''", "s1"),
        ("s gt ''", "s2 s3 s4 s5 s6 s7"),
        ("s lt 'a'", "s1 s2"),
        ("s gt 'ab'", "s5 s6 s7"),
        ("s lt '\u{E000}' and s gt 'é'", "s6"),
        ("d lt 0.0", "d1"),
        ("d eq 0.0", "d2"),
        ("d gt 1.0", "d3 d4"),
        ("d eq 1E300", "d3"),
        ("l eq 9007199254740993L", "l2"),
        ("l gt 9007199254740992L", "l2 l3"),
        ("l lt 0L", "l1"),
        ("l eq 9223372036854775807L", "l3"),
        ("t eq datetime'2020-01-01T00:00:00.0000001Z'", "t2"),
        ("t gt datetime'2020-01-01T00:00:00.0000001Z'", "t3"),
        ("t lt datetime'2020-01-01T00:00:00Z'", "t1"),
        ("b eq true", "b2"),
        ("b", "b2"),
        ("not b", "b1 d1 d2 d3 d4 d5 g1 g2 l1 l2 l3 s1 s2 s3 s4 s5 s6 s7 t1 t2 t3 x1 x2 x3 x4"),
        ("g eq guid'10000000-0000-0000-0000-000000000000'", "g2"),
        ("g gt guid'00000000-0000-0000-0000-000000000001'", "g2"),
        ("x eq X'00'", "x2"),
        ("x eq x'00'", "x2"),
        ("x eq binary'ff'", "x4"),
        ("x gt X'00'", "x3 x4"),
        ("missing eq ''", ""),
        ("missing ne ''", ""),
        ("not (missing eq '')", "b1 b2 d1 d2 d3 d4 d5 g1 g2 l1 l2 l3 s1 s2 s3 s4 s5 s6 s7 t1 t2 t3 x1 x2 x3 x4"),
        ("5 lt d", "d3 d4"),
        ("'ab' eq s", "s4"),
    ] {
        rule!(suite, &format!("6.2 {filter}"), {
            same("rows", &found(suite, &table, filter).await?, &expected)
        });
    }
    choice!(suite, "6.2 NaN is not equal to anything", {
        same("ne", &found(suite, &table, "RowKey eq 'd5' and d ne 1.0").await?, &"d5")?;
        same("lt", &found(suite, &table, "RowKey eq 'd5' and d lt 1.0").await?, &"")
    });
    rule!(suite, "6.2 Timestamp is a DateTime like any other", {
        let filter = "Timestamp gt datetime'2020-01-01T00:00:00Z' and RowKey eq 's1'";
        same("rows", &found(suite, &table, filter).await?, &"s1")
    });
    rule!(suite, "6.4 entities come in the order of the UTF-16 units of their keys", {
        let other = "order";
        for row in ["\u{E000}", "😀", "b", "B", "a", ""] {
            let members = format!(r#""PartitionKey":"{other}","RowKey":"{row}""#);
            suite.insert(&table, &members).await?;
        }
        same("rows", &found(suite, &table, &format!("PartitionKey eq '{other}'")).await?, &" B a b 😀 \u{E000}")
    });
}

/// How filters may be written.
async fn grammar(suite: &mut Suite) {
    let table = suite.table().await;
    for (row, a, b) in [("1", 1, false), ("2", 2, true), ("3", 3, false), ("4", 4, true)] {
        let members = format!(r#""PartitionKey":"p","RowKey":"{row}","a":{a},"b":{b},"q":"O'B""#);
        suite.insert(&table, &members).await.unwrap();
    }
    for (filter, expected) in [
        ("a eq 1 or a eq 2 and b eq false", "1"),
        ("(a eq 1 or a eq 2) and b eq false", "1"),
        ("not (a eq 1) and b eq false", "3"),
        ("not b and a gt 1", "3"),
        ("not (a eq 1 or a eq 2)", "3 4"),
        ("(a eq 1)or(a eq 4)", "1 4"),
        ("((((a eq 1))))", "1"),
        ("  a   eq   1  ", "1"),
        ("true", "1 2 3 4"),
        ("false", ""),
        ("(true and RowKey eq '1') or false", "1"),
        ("b eq TRUE", "2 4"),
        ("q eq 'O''B'", "1 2 3 4"),
        ("RowKey ge '2' and RowKey lt '4'", "2 3"),
        ("PartitionKey eq 'p' and RowKey eq '3'", "3"),
        ("PartitionKey eq 'q'", ""),
        ("a eq -1", ""),
        ("a ge 1 and a le 3 and a ne 2", "1 3"),
        ("A eq 1", ""),
        ("PartitionKey eq 'o' or PartitionKey gt 'o'", "1 2 3 4"),
        ("Timestamp lt datetime'2000-01-01T00:00:00Z'", ""),
    ] {
        rule!(suite, &format!("6.1 {filter}"), {
            same("rows", &found(suite, &table, filter).await?, &expected)
        });
    }
    rule!(suite, "6.1 an empty filter is none", {
        same("rows", &suite.rows(&table, "$filter=").await?.len(), &4)
    });
    rule!(suite, "6.1 more than 15 comparisons", {
        let terms: Vec<_> = (0..200).map(|n| format!("a eq {n}")).collect();
        same("rows", &found(suite, &table, &terms.join(" or ")).await?, &"1 2 3 4")
    });
    rule!(suite, "6.1 terms nested one in another, as the classic .NET client writes them", {
        let mut filter = "a eq 0".to_owned();
        for n in 1..200 {
            filter = format!("({filter}) or (a eq {n})");
        }
        same("rows", &found(suite, &table, &filter).await?, &"1 2 3 4")
    });
    rule!(suite, "1.2 the set may be named without parentheses", {
        let response = suite.done(&format!("GET /{table}"), &[], "").await?;
        same("rows", &response.json()["value"].as_array().map(Vec::len), &Some(4))
    });
    rule!(suite, "6.4 unknown options without a dollar are ignored", {
        same("rows", &suite.rows(&table, "whatever=1").await?.len(), &4)
    });
}

/// The types in a filter: numbers by their suffix, and the properties that each entity has.
async fn types(suite: &mut Suite) {
    let table = suite.table().await;
    suite.insert(&table, r#""PartitionKey":"p","RowKey":"1","a@odata.type":"Edm.Int64","a":"1498179600055""#).await.unwrap();
    suite.insert(&table, r#""PartitionKey":"p","RowKey":"2","a":1498179600055"#).await.unwrap();
    let unrecognized = |number: &str, at: usize, filter: &str| format!("Unrecognized 'Edm.Int32' literal '{number}' at '{at}' in '{filter}'.");
    for (filter, number, at) in [
        ("a eq 1498179600055", "1498179600055", 5),
        ("1498179600055 le a", "1498179600055", 0),
        ("RowKey eq '1' and not (b lt -2147483649)", "-2147483649", 28),
        ("PartitionKey eq 2147483648", "2147483648", 16),
    ] {
        rule!(suite, &format!("F.8 an integer beyond 32 bits without its suffix: {filter}"), {
            let response = suite.ask(&format!("GET /{table}()?$filter={}", percent(filter)), &[], "").await;
            refused(&response, 400, "InvalidInput")
        });
        choice!(suite, &format!("F.8 the message for {filter}"), {
            let response = suite.ask(&format!("GET /{table}()?$filter={}", percent(filter)), &[], "").await;
            holds(&response.body, response.body.contains(&unrecognized(number, at, filter)))
        });
    }
    for (filter, expected) in [
        ("a eq 1498179600055L", "1 2"),
        ("1498179600056L gt a and a ge 1498179600055l", "1 2"),
        ("a gt 2147483647", "1 2"),
        ("a gt 1498179600055.0", ""),
    ] {
        rule!(suite, &format!("F.8 {filter}"), {
            same("rows", &found(suite, &table, filter).await?, &expected)
        });
    }
    for (filter, types, operator) in [
        ("(PartitionKey ) and (RowKey ge '000050')", "'Edm.String' and 'Edm.Boolean'", "And"),
        ("RowKey eq '1' or Timestamp", "'Edm.Boolean' and 'Edm.DateTime'", "Or"),
    ] {
        rule!(suite, &format!("F.9 a property with a type is no condition: {filter}"), {
            let response = suite.ask(&format!("GET /{table}()?$filter={}", percent(filter)), &[], "").await;
            refused(&response, 400, "InvalidInput")?;
            let message = format!("A binary operator with incompatible types was detected. Found operand types {types} for operator kind '{operator}'.");
            holds(&response.body, response.body.contains(&message))
        });
    }
    for filter in ["PartitionKey", "not RowKey", "a and (Timestamp)"] {
        choice!(suite, &format!("F.9 a property with a type is no condition: {filter}"), {
            suite.expect(&format!("GET /{table}()?$filter={}", percent(filter)), &[], "", (400, "InvalidInput")).await
        });
    }
    choice!(suite, "F.9 a key equals no number", {
        same("rows", &found(suite, &table, "RowKey eq 1").await?, &"")
    });
    for (filter, message) in [
        ("<", "Syntax error: character '<' is not valid at position 0 in '<'."),
        ("aaa bbb ccc", "Syntax error at position 7 in 'aaa bbb ccc'."),
    ] {
        rule!(suite, &format!("F.8 the message for {filter}"), {
            let response = suite.ask(&format!("GET /{table}()?$filter={}", percent(filter)), &[], "").await;
            refused(&response, 400, "InvalidInput")?;
            holds(&response.body, response.body.contains(message))
        });
    }
}

/// Texts that are easily taken for others.
async fn spellings(suite: &mut Suite) {
    let table = suite.table().await;
    // In UTF-8 the order of the last two is the other way round.
    for (row, text) in [("blank", "a b"), ("plus", "a+b"), ("low", "\u{ffee}"), ("pair", "\u{1d11e}")] {
        let members = format!(r#""PartitionKey":"p","RowKey":"{row}","s":"{text}""#);
        suite.insert(&table, &members).await.unwrap();
    }
    choice!(suite, "6.1 a plus in a query is a blank, and escaped it is a plus", {
        same("blank", &suite.rows(&table, "$filter=s+eq+'a+b'").await?, &["blank"])?;
        same("plus", &suite.rows(&table, "$filter=s%20eq%20'a%2Bb'").await?, &["plus"])
    });
    choice!(suite, "6.2 texts are in the order of their UTF-16 units", {
        same("rows", &found(suite, &table, "s gt 'b' and s lt '\u{ffee}'").await?, &"pair")
    });
    let table = suite.table().await;
    suite.insert(&table, r#""PartitionKey":"","RowKey":"""#).await.unwrap();
    rule!(suite, "2.5 full metadata of an entity whose keys are empty is that of an entity", {
        let line = format!("GET /{table}()");
        let response = suite.done(&line, &["Accept: application/json;odata=fullmetadata"], "").await?;
        let edit = format!("{table}(PartitionKey='',RowKey='')");
        let entity = &response.json()["value"][0];
        same("link", &entity["odata.editLink"].as_str(), &Some(&*edit))?;
        let id = format!("{}/{edit}", suite.account.url());
        same("id", &entity["odata.id"].as_str(), &Some(&*id))
    });
}

async fn projections(suite: &mut Suite) {
    let table = suite.table().await;
    suite.insert(&table, r#""PartitionKey":"p","RowKey":"1","a":1"#).await.unwrap();
    suite.insert(&table, r#""PartitionKey":"p","RowKey":"2","b":2"#).await.unwrap();
    for (names, expected) in [
        ("a", json!([{"a":1},{"a":null}])),
        ("RowKey,b", json!([{"RowKey":"1","b":null},{"RowKey":"2","b":2}])),
        ("PartitionKey,RowKey", json!([{"PartitionKey":"p","RowKey":"1"},{"PartitionKey":"p","RowKey":"2"}])),
    ] {
        rule!(suite, &format!("6.3 $select={names}"), {
            let response = suite.done(&format!("GET /{table}()?$select={names}"), &[NO_METADATA], "").await?;
            same("entities", &response.json()["value"], &expected)
        });
    }
    rule!(suite, "0.1 entities have their ETags, selected or not", {
        let response = suite.done(&format!("GET /{table}()?$select=a"), &[], "").await?;
        let json = response.json();
        let etags = json["value"].as_array().map(|all| all.iter().filter(|e| e["odata.etag"].is_string()).count());
        same("ETags", &etags, &Some(2))?;
        same("an ETag of its own", &response.header("ETag"), &None::<&str>)
    });
    rule!(suite, "6.3 a filter looks at what is not selected", {
        same("rows", &suite.rows(&table, "$select=RowKey&$filter=b%20eq%202").await?, &vec!["2".to_owned()])
    });
}

async fn pages(suite: &mut Suite) {
    let table = suite.table().await;
    for partition in 0..3 {
        for row in 0..5 {
            let members = format!(r#""PartitionKey":"p{partition}","RowKey":"{row}","even":{}"#, row % 2 == 0);
            suite.insert(&table, &members).await.unwrap();
        }
    }
    for top in [1, 2, 7, 15, 1000] {
        rule!(suite, &format!("6.4, 6.5 pages of {top} are all entities, each once"), {
            let rows = suite.rows(&table, &format!("$top={top}")).await?;
            same("rows", &rows.concat(), &"012340123401234")?;
            let rows = suite.rows(&table, &format!("$top={top}&$filter=even%20eq%20true")).await?;
            same("even rows", &rows.concat(), &"024024024")
        });
    }
    rule!(suite, "6.4 $top=0 is an empty list", {
        same("rows", &suite.done(&format!("GET /{table}()?$top=0"), &[], "").await?.json()["value"], &json!([]))
    });
    rule!(suite, "6.4 $top with more after it gives a token, in the form of the service", {
        let response = suite.done(&format!("GET /{table}()?$top=1"), &[], "").await?;
        let token = response.header("x-ms-continuation-NextPartitionKey").ok_or("no token")?;
        let mut parts = token.split('!');
        let (version, length, text) = (parts.next(), parts.next(), parts.next());
        same("version", &version, &Some("1"))?;
        same("length", &length, &text.map(|text| text.len().to_string()).as_deref())
    });
    rule!(suite, "6.5 a token for an entity that is gone continues after it", {
        let response = suite.done(&format!("GET /{table}()?$top=2"), &[], "").await?;
        let header = |name: &str| percent(response.header(name).unwrap_or_default());
        let next = format!(
            "&NextPartitionKey={}&NextRowKey={}",
            header("x-ms-continuation-NextPartitionKey"),
            header("x-ms-continuation-NextRowKey")
        );
        suite.done(&format!("DELETE /{table}(PartitionKey='p0',RowKey='2')"), &["If-Match: *"], "").await?;
        let response = suite.done(&format!("GET /{table}()?$top=1{next}"), &[], "").await?;
        same("row", &response.json()["value"][0]["RowKey"].as_str(), &Some("3"))
    });
    rule!(suite, "6.5 a token without a row starts at the partition", {
        // `p1`, as the service writes it.
        let response = suite.done(&format!("GET /{table}()?$top=1&NextPartitionKey=1%214%21cDE-"), &[], "").await?;
        same("partition", &response.json()["value"][0]["PartitionKey"].as_str(), &Some("p1"))
    });
    choice!(suite, "6.4 $top is a number without a sign", {
        for top in ["%2B5", "+5", "-0", "5.0", "0x5", "1e1", "%205%20x"] {
            for resource in [&*format!("{table}()"), "Tables"] {
                suite.expect(&format!("GET /{resource}?$top={top}"), &[], "", (400, "InvalidInput")).await?;
            }
        }
        suite.expect(&format!("GET /{table}()?$top=007"), &[], "", (200, "")).await
    });
    let empty = suite.table().await;
    rule!(suite, "6.5 a page may start at an empty key", {
        for (partition, row) in [("", ""), ("", "1"), ("p", ""), ("p", "1")] {
            suite.insert(&empty, &format!(r#""PartitionKey":"{partition}","RowKey":"{row}""#)).await?;
        }
        same("rows", &suite.rows(&empty, "$top=1").await?, &["", "1", "", "1"])
    });
    let large = suite.table().await;
    choice!(suite, "6.4 a page ends at 4 MiB, measured after the projection", {
        let text = "x".repeat(32 * 1024);
        let members: Vec<_> = (0..15).map(|n| format!(r#""t{n}":"{text}""#)).collect();
        for row in 10..20 {
            suite.insert(&large, &format!(r#""PartitionKey":"p","RowKey":"{row}",{}"#, members.join(","))).await?;
        }
        let response = suite.done(&format!("GET /{large}()"), &[NO_METADATA], "").await?;
        let length = response.body.len();
        holds(format!("a page of {length} bytes"), (3 << 20..=(4 << 20) + 2).contains(&length))?;
        same("rows", &response.json()["value"].as_array().map(Vec::len), &Some(8))?;
        same("token", &response.header("x-ms-continuation-NextRowKey"), &Some("1!4!MTg-"))?;
        let response = suite.done(&format!("GET /{large}()?$select=RowKey"), &[], "").await?;
        same("selected rows", &response.json()["value"].as_array().map(Vec::len), &Some(10))
    });
    rule!(suite, "6.4 a page ends at 1,000 entities", {
        for start in 0..11 {
            let changes = (start * 100..start * 100 + 100).map(|row| {
                let path = format!("{}/{table}(PartitionKey='many',RowKey='{row:04}')", suite.account.url());
                part("changeset_1", &format!("PUT {path} HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{{}}"))
            });
            suite.done("POST /$batch", &[MULTIPART], &batch_of(&changes.collect::<String>())).await?;
        }
        let response = suite.done(&format!("GET /{table}()?$filter=PartitionKey%20eq%20'many'"), &[], "").await?;
        same("first page", &response.json()["value"].as_array().map(Vec::len), &Some(1000))?;
        same("has a token", &response.header("x-ms-continuation-NextRowKey").is_some(), &true)?;
        same("all", &suite.rows(&table, "$filter=PartitionKey%20eq%20'many'").await?.len(), &1100)
    });
}

async fn refusals(suite: &mut Suite) {
    let table = suite.table().await;
    suite.refusals(&table, &[
        ("0.1 a missing table", "GET /ConfMissing()", &[], "", 404, "TableNotFound"),
        ("6.1 three words", "GET /TABLE()?$filter=aaa%20bbb%20ccc", &[], "", 400, "InvalidInput"),
        ("6.1 a quote that is not closed", "GET /TABLE()?$filter=a%20eq%20'b", &[], "", 400, "InvalidInput"),
        ("6.1 a parenthesis that is not closed", "GET /TABLE()?$filter=(a%20eq%201", &[], "", 400, "InvalidInput"),
        ("6.1 no blanks around an operator", "GET /TABLE()?$filter=a%20eq1", &[], "", 400, "InvalidInput"),
        ("6.1 a double quote", "GET /TABLE()?$filter=a%20eq%20%22b%22", &[], "", 400, "InvalidInput"),
        ("6.1 a malformed date", "GET /TABLE()?$filter=a%20eq%20datetime'x'", &[], "", 400, "InvalidInput"),
        ("6.4 $top above 1,000", "GET /TABLE()?$top=1001", &[], "", 400, "InvalidInput"),
        ("6.4 a negative $top", "GET /TABLE()?$top=-1", &[], "", 400, "InvalidInput"),
        ("6.4 a $top that is no number", "GET /TABLE()?$top=a", &[], "", 400, "InvalidInput"),
        ("0.1 an empty NextRowKey", "GET /TABLE()?NextPartitionKey=1%214%21cGs-&NextRowKey=", &[], "", 400, "InvalidInput"),
    ]).await;
    suite.refusals_by_choice(&table, &[
        ("6.1 a function", "GET /TABLE()?$filter=startswith(a,'b')", &[], "", 501, "NotImplemented"),
        ("6.1 arithmetic", "GET /TABLE()?$filter=a%20add%201%20eq%202", &[], "", 501, "NotImplemented"),
        ("6.1 constants alone", "GET /TABLE()?$filter=1%20eq%201", &[], "", 501, "NotImplemented"),
        ("6.1 two properties", "GET /TABLE()?$filter=a%20eq%20b", &[], "", 501, "NotImplemented"),
        ("6.4 $orderby", "GET /TABLE()?$orderby=a", &[], "", 501, "NotImplemented"),
        ("6.4 $skip", "GET /TABLE()?$skip=1", &[], "", 501, "NotImplemented"),
        ("6.4 $expand", "GET /TABLE()?$expand=a", &[], "", 501, "NotImplemented"),
        ("6.4 $inlinecount", "GET /TABLE()?$inlinecount=allpages", &[], "", 501, "NotImplemented"),
        ("6.5 an empty token", "GET /TABLE()?NextPartitionKey=", &[], "", 400, "InvalidInput"),
        ("6.5 a malformed token of a row", "GET /TABLE()?NextPartitionKey=1%214%21Yg--&NextRowKey=x", &[], "", 400, "InvalidInput"),
        ("6.5 a malformed token", "GET /TABLE()?NextPartitionKey=x", &[], "", 400, "InvalidInput"),
        ("6.5 a row without a partition", "GET /TABLE()?NextRowKey=1%214%21cGs-", &[], "", 400, "InvalidInput"),
        ("2.2 $select with DataServiceVersion 1.0", "GET /TABLE()?$select=a", &["DataServiceVersion: 1.0"], "", 400, "InvalidInput"),
    ]).await;
}
