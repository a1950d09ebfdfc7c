//! The limits of section 5.1: what is just within them, and what is not.

use crate::run::{Suite, choice, refused, rule, same};
use crate::sign::percent;

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    let insert = |members: &str| format!(r#"{{"PartitionKey":"p","RowKey":"{:016x}",{members}}}"#, fastrand::u64(..));
    let line = format!("POST /{table}");
    let many = |count: usize| {
        let members: Vec<_> = (0..count).map(|n| format!(r#""a{n}":{n}"#)).collect();
        members.join(",")
    };
    let texts = |count: usize, length: usize| {
        let text = "x".repeat(length);
        let members: Vec<_> = (0..count).map(|n| format!(r#""t{n:02}":"{text}""#)).collect();
        members.join(",")
    };
    // An entity's size: 4, the lengths of its keys and 8 for each property, its name and its text,
    // lengths twice.
    let keys = 4 + 2 * (1 + 16);
    let full = (1024 * 1024 - keys) - 15 * (8 + 2 * 3 + 2 * 32_768 + 4);
    let last = (full - 8 - 2 * 4 - 4) / 2;
    let largest = |last: usize| format!(r#"{},"last":"{}""#, texts(15, 32_768), "y".repeat(last));
    for (rule, members, expected) in [
        ("5.1 a name of 255 characters", format!(r#""{}":1"#, "n".repeat(255)), None),
        ("5.1 a name of 256 characters", format!(r#""{}":1"#, "n".repeat(256)), Some("PropertyNameTooLong")),
        ("5.1 a name in other letters", r#""啊齄丂狛狜":1,"_x":1,"größe":1"#.to_owned(), None),
        ("5.1 a name that is a number", r#""123":1"#.to_owned(), Some("PropertyNameInvalid")),
        ("5.1 a name with a hyphen", r#""a-b":1"#.to_owned(), Some("PropertyNameInvalid")),
        ("5.1 a name with a blank", r#""a b":1"#.to_owned(), Some("PropertyNameInvalid")),
        ("5.1 an empty name", r#""":1"#.to_owned(), Some("PropertyNameInvalid")),
        ("5.1 252 properties", many(252), None),
        ("5.1 253 properties", many(253), Some("TooManyProperties")),
        ("5.1 a text of 32,768 characters", texts(1, 32_768), None),
        ("5.1 a text of 32,769 characters", texts(1, 32_769), Some("PropertyValueTooLarge")),
        ("5.1 a text of 16,384 pairs of units", format!(r#""t":"{}""#, "😀".repeat(16_384)), None),
        ("5.1 a text of one pair more", format!(r#""t":"{}""#, "😀".repeat(16_385)), Some("PropertyValueTooLarge")),
        ("5.1 a Binary of 65,536 bytes", format!(r#""b@odata.type":"Edm.Binary","b":"{}AA==""#, "AAAA".repeat(21_845)), None),
        ("5.1 a Binary of 65,538 bytes", format!(r#""b@odata.type":"Edm.Binary","b":"{}""#, "AAAA".repeat(21_846)), Some("PropertyValueTooLarge")),
        ("5.2 an entity of 1 MiB", largest(last), None),
        ("5.2 an entity of two bytes more", largest(last + 1), Some("EntityTooLarge")),
        ("F.11 an entity over 1 MiB in one text", texts(1, 600_000), Some("EntityTooLarge")),
        ("F.11 an entity over 1 MiB with one large text", format!("{},{}", texts(15, 32_768), r#""last":""#.to_owned() + &"y".repeat(40_000) + "\""), Some("EntityTooLarge")),
        // Its properties alone are 1 MiB.
        ("F.11 the keys count, too", texts(1, (1024 * 1024 - 8 - 2 * 3 - 4) / 2), Some("EntityTooLarge")),
        ("F.11 an entity below 1 MiB in one text", texts(1, 500_000), Some("PropertyValueTooLarge")),
        ("F.21 a name with combining marks", r#""ชื่อ":1,"हिन्दी":2,"Gro\u0308ße":3"#.to_owned(), None),
        ("F.21 a name with a connector, a letter number and a digit", r#""a‿b":1,"Ⅷ":2,"x٣":3"#.to_owned(), None),
        ("F.21 a name with a superscript", r#""x²":1"#.to_owned(), Some("PropertyNameInvalid")),
        ("F.21 a name with a fraction", r#""a½":1"#.to_owned(), Some("PropertyNameInvalid")),
        ("F.21 a name with a number in a circle", r#""a①":1"#.to_owned(), Some("PropertyNameInvalid")),
        ("F.21 a name that starts with a mark", r#""\u0308a":1"#.to_owned(), Some("PropertyNameInvalid")),
    ] {
        rule!(suite, rule, {
            let response = suite.ask(&line, &[], &insert(&members)).await;
            match expected {
                None => same("status", &response.status, &201),
                Some(code) => refused(&response, 400, code),
            }
        });
    }
    choice!(suite, "5.1 a merge is counted by its result", {
        let path = format!("/{table}(PartitionKey='p',RowKey='merged')");
        suite.done(&format!("PUT {path}"), &[], &format!("{{{}}}", many(252))).await?;
        same("status", &suite.ask(&format!("MERGE {path}"), &[], r#"{"a0":1}"#).await.status, &204)?;
        refused(&suite.ask(&format!("MERGE {path}"), &[], r#"{"z":1}"#).await, 400, "TooManyProperties")
    });
    rule!(suite, "F.21 a filter names such a property", {
        suite.done(&line, &[], &insert(r#""ชื่อ":7,"a‿b":7"#)).await?;
        for name in ["ชื่อ", "a‿b"] {
            let filter = percent(&format!("{name} eq 7"));
            same(name, &suite.rows(&table, &format!("$filter={filter}")).await?.len(), &1)?;
        }
        Ok(())
    });
    rule!(suite, "F.21 a filter names no other", {
        let filter = percent("x² eq 7");
        suite.expect(&format!("GET /{table}()?$filter={filter}"), &[], "", (400, "InvalidInput")).await
    });
    rule!(suite, "F.11 in a batch, too", {
        let part = |request: &str| format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n{request}\r\n--c--\r\n--b--\r\n");
        let request = format!("POST /{table} HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{}", insert(&texts(1, 600_000)));
        let response = suite.done("POST /$batch", &["Content-Type: multipart/mixed; boundary=b"], &part(&request)).await?;
        same("code", &response.body.contains("\"EntityTooLarge\""), &true)
    });
    let key = "k".repeat(512);
    rule!(suite, "5.1 keys of 512 characters", {
        let body = format!(r#"{{"PartitionKey":"{key}","RowKey":"{key}"}}"#);
        same("status", &suite.ask(&line, &[], &body).await.status, &201)
    });
    choice!(suite, "5.1 keys of 513 characters", {
        let body = format!(r#"{{"PartitionKey":"{key}k","RowKey":"r"}}"#);
        same("status", &suite.ask(&line, &[], &body).await.status, &400)
    });
    for character in ['/', '\\', '#', '?', '\u{0}', '\u{1F}', '\u{7F}', '\u{9F}'] {
        rule!(suite, &format!("5.1 a key with {character:?}"), {
            let body = serde_json::json!({"PartitionKey": format!("a{character}b"), "RowKey": "r"});
            same("status", &suite.ask(&line, &[], &body.to_string()).await.status, &400)
        });
        choice!(suite, &format!("5.1 the code for a key with {character:?}"), {
            let body = serde_json::json!({"PartitionKey": "p", "RowKey": format!("a{character}b")});
            refused(&suite.ask(&line, &[], &body.to_string()).await, 400, "OutOfRangeInput")
        });
    }
    rule!(suite, "5.1 a body of more than 4 MiB", {
        refused(&suite.ask(&line, &[], &insert(&texts(65, 65_536))).await, 413, "RequestBodyTooLarge")
    });
}
