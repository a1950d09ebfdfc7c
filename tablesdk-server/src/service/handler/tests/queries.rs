//! Filters of many levels, on a thread with a small stack.

use super::*;

/// The values of `v` in the first page.
fn found(client: &Client, query: &str) -> String {
    let response = client.send("GET", &format!("people()?$select=v&{query}"), &[], "");
    assert_eq!(response.status(), 200, "{query:.100}: {}", body(&response));
    body(&response).to_owned()
}

#[test]
fn deep_filters_take_no_stack() {
    let thread = std::thread::Builder::new().stack_size(512 * 1024);
    let test = || {
        let client = Client::with_table();
        (0..9).for_each(|v| client.insert("p", &v.to_string(), v));
        let all = found(&client, "");
        let nothing = found(&client, "$filter=v%20eq%2099");
        let is_two = found(&client, "$filter=v%20eq%202");
        for (opening, closing, depth, expected) in [
            ("(", ")", 10_000, &is_two),
            ("not%20", "", 9_000, &is_two),
            ("not(", ")", 10_000, &is_two),
            // Each level adds an `and` within an `or`.
            ("v%20and(v%20or%20", ")", 3_000, &nothing),
            ("true%20and(false%20or%20", ")", 2_000, &is_two),
            ("false%20or(true%20and%20", ")", 2_000, &is_two),
            ("RowKey%20ge%20''%20or%20true%20and(", ")", 1_500, &all),
        ] {
            let filter = format!(
                "$filter={}v%20eq%202{}",
                opening.repeat(depth),
                closing.repeat(depth)
            );
            assert_eq!(&found(&client, &filter), expected, "{opening}");
        }
        // One level for each term, as clients build it that combine filters two at a time.
        let terms = (0..1_000).map(|index| format!("v%20eq%20{index}"));
        let nested = terms.reduce(|text, term| format!("({text})%20or%20({term})"));
        let nested = nested.unwrap();
        assert_eq!(found(&client, &format!("$filter={nested}")), all);
    };
    thread.spawn(test).unwrap().join().unwrap();
}
