//! Query entities: filters, projections and pages.
//!
//! Follows continuations as a client does, without a look into them. That a query reads no more than it needs is tested in
//! the engine.

use super::*;

/// A table of three partitions with three rows each; `v` counts them.
fn client() -> Client {
    let client = Client::with_table();
    let keys = ["a", "b", "😀"].map(|p| ["1", "2", "3"].map(|r| (p, r)));
    for (v, (p, r)) in keys.iter().flatten().enumerate() {
        let entity = format!(r#"{{"PartitionKey":"{p}","RowKey":"{r}","v":{v}}}"#);
        assert_eq!(client.send("POST", "people", &[], &entity).status(), 201);
    }
    client
}

/// The values of `v` in a page, and the query options that ask for the next one.
fn page(client: &Client, query: &str) -> (String, String) {
    let response = client.send("GET", &format!("people()?$select=v&{query}"), &[], "");
    assert_eq!(response.status(), 200, "{query}: {}", body(&response));
    let mut next = String::new();
    for (name, option) in [
        ("x-ms-continuation-nextpartitionkey", "NextPartitionKey"),
        ("x-ms-continuation-nextrowkey", "NextRowKey"),
    ] {
        if let Some(token) = header(&response, name) {
            let token = token.replace('!', "%21");
            next = [&next, "&", option, "=", &token].concat();
        }
    }
    let values = body(&response).replace(r#"{"v":"#, "").replace('}', "");
    let (_, values) = values.split_once('[').unwrap();
    (values.trim_end_matches(']').to_owned(), next)
}

#[test]
fn a_filter_chooses_and_the_keys_order() {
    let client = client();
    for (filter, expected) in [
        ("", "0,1,2,3,4,5,6,7,8"),
        ("true", "0,1,2,3,4,5,6,7,8"),
        ("PartitionKey eq 'b'", "3,4,5"),
        ("PartitionKey eq '😀' and RowKey ge '2'", "7,8"),
        ("PartitionKey eq 'a' and RowKey eq '3'", "2"),
        ("RowKey eq '2'", "1,4,7"),
        ("v ge 3 and not (v gt 4)", "3,4"),
        ("v eq 3L", ""),
        ("missing ne 5", ""),
        ("Timestamp lt datetime'2000-01-01T00:00:00Z'", ""),
        ("PartitionKey eq 'a' or PartitionKey gt 'b'", "0,1,2,6,7,8"),
    ] {
        let query = percent(filter);
        assert_eq!(
            page(&client, &format!("$filter={query}")),
            (expected.to_owned(), String::new()),
            "{filter}"
        );
    }
}

fn percent(text: &str) -> String {
    let bytes: Vec<_> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    bytes.concat()
}

#[test]
fn pages_follow_one_another() {
    let client = client();
    for (filter, top, expected) in [
        ("", 4, &["0,1,2,3", "4,5,6,7", "8"][..]),
        ("", 9, &["0,1,2,3,4,5,6,7,8"]),
        ("PartitionKey eq '😀'", 2, &["6,7", "8"]),
        ("RowKey ge '2'", 3, &["1,2,4", "5,7,8"]),
        ("", 0, &[""]),
    ] {
        let query = format!("$filter={}&$top={top}", percent(filter));
        let (mut pages, mut next) = (Vec::new(), String::new());
        loop {
            let (values, following) = page(&client, &format!("{query}{next}"));
            pages.push(values);
            next = following;
            if next.is_empty() {
                break;
            }
        }
        assert_eq!(pages, expected, "{query}");
    }
    // The start of a partition; `b` in Base64 is `Yg==`.
    let (values, _) = page(&client, "NextPartitionKey=1!4!Yg--");
    assert_eq!(values, "3,4,5,6,7,8");
}

#[test]
fn what_a_query_cannot_mean_is_refused() {
    let client = client();
    for (query, expected) in [
        ("$top=-1", (400, "InvalidInput")),
        ("$top=1001", (400, "InvalidInput")),
        ("$filter=v%20eq", (400, "InvalidInput")),
        ("$filter=v%20eq%20v", (501, "NotImplemented")),
        ("$orderby=v", (501, "NotImplemented")),
        ("NextPartitionKey=x", (400, "InvalidInput")),
        ("NextPartitionKey=", (400, "InvalidInput")),
        (
            "NextPartitionKey=1!4!Yg--&NextRowKey=",
            (400, "InvalidInput"),
        ),
        (
            "NextPartitionKey=1!4!Yg--&NextRowKey=x",
            (400, "InvalidInput"),
        ),
        ("NextRowKey=1!4!Yg--", (400, "InvalidInput")),
    ] {
        let response = client.send("GET", &format!("people()?{query}"), &[], "");
        assert_eq!(status_and_code(&response), expected, "{query}");
    }
    let response = client.send("GET", "nobody()", &[], "");
    assert_eq!(status_and_code(&response), (404, "TableNotFound"));
}

#[test]
fn the_empty_key_can_start_a_page() {
    let client = Client::with_table();
    for (p, r) in [("", ""), ("", "1"), ("p", ""), ("p", "1")] {
        let entity = format!(r#"{{"PartitionKey":"{p}","RowKey":"{r}","v":1}}"#);
        assert_eq!(client.send("POST", "people", &[], &entity).status(), 201);
    }
    let mut next = String::new();
    for _ in 0..4 {
        let (values, following) = page(&client, &format!("$top=1{next}"));
        assert_eq!(values, "1");
        next = following;
    }
    assert_eq!(next, "");
}

#[test]
fn a_page_ends_at_a_thousand_entities() {
    let client = Client::with_table();
    for number in 0..1001 {
        let entity = format!(r#"{{"PartitionKey":"p","RowKey":"{number:04}","v":1}}"#);
        assert_eq!(client.send("POST", "people", &[], &entity).status(), 201);
    }
    let (values, next) = page(&client, "");
    assert_eq!(values.split(',').count(), 1000);
    let (values, next) = page(&client, &next);
    assert_eq!((values.as_str(), next.as_str()), ("1", ""));
}

#[test]
fn a_page_ends_at_four_mebibytes() {
    let client = Client::with_table();
    let text = "x".repeat(32 * 1024);
    let large: Vec<_> = (0..15)
        .map(|index| format!(r#""p{index}":"{text}""#))
        .collect();
    let large = large.join(",");
    for number in 10..20 {
        let entity = format!(r#"{{"PartitionKey":"p","RowKey":"{number}",{large}}}"#);
        assert_eq!(client.send("POST", "people", &[], &entity).status(), 201);
    }
    let response = client.send("GET", "people()", &[], "");
    let length = response.body().len();
    assert!((3 << 20..=(4 << 20) + 2).contains(&length), "{length}");
    assert_eq!(body(&response).matches("RowKey").count(), 8);
    let next = header(&response, "x-ms-continuation-nextrowkey");
    assert_eq!(next, Some("1!4!MTg-"));
    // A projection makes entities small, and so pages long.
    let (values, next) = page(&client, "");
    assert_eq!((values.split(',').count(), next.as_str()), (10, ""));
}

#[test]
fn the_depth_of_a_filter_takes_no_stack() {
    let thread = std::thread::Builder::new().stack_size(512 * 1024);
    let test = || {
        let client = client();
        let (all, _) = page(&client, "");
        let is_two = page(&client, "$filter=v%20eq%202").0;
        for (opening, closing, depth, expected) in [
            ("(", ")", 10_000, &is_two),
            ("not%20", "", 9_000, &is_two),
            ("not(", ")", 10_000, &is_two),
            // Each level adds an `and` within an `or`.
            ("v%20and(v%20or%20", ")", 3_000, &String::new()),
            ("true%20and(false%20or%20", ")", 2_000, &is_two),
            ("false%20or(true%20and%20", ")", 2_000, &is_two),
            ("RowKey%20ge%20''%20or%20true%20and(", ")", 1_500, &all),
        ] {
            let filter = format!(
                "$filter={}v%20eq%202{}",
                opening.repeat(depth),
                closing.repeat(depth)
            );
            assert_eq!(&page(&client, &filter).0, expected, "{opening}");
        }
        // One level for each term, as clients build it that combine filters two at a time.
        let terms = (0..1_000).map(|index| format!("v%20eq%20{index}"));
        let nested = terms.reduce(|text, term| format!("({text})%20or%20({term})"));
        let nested = nested.unwrap();
        assert_eq!(page(&client, &format!("$filter={nested}")).0, all);
    };
    thread.spawn(test).unwrap().join().unwrap();
}
