//! The builder's options for pages, and the time and the turns of long queries.

use super::*;

/// A table of three partitions with three entities each.
fn client(paging: Paging) -> Client {
    let client = Client::with(|options| options.paging = paging).and_table();
    for p in ["", "a", "b"] {
        for r in ["", "1", "2"] {
            client.insert(p, r, 1);
        }
    }
    client
}

/// The keys of each page, and for each token, whether it has a row key.
fn pages(client: &Client, query: &str) -> (Vec<String>, Vec<bool>) {
    let (mut pages, mut tokens, mut next) = (Vec::new(), Vec::new(), String::new());
    loop {
        let resource = format!("people()?$select=PartitionKey,RowKey&{query}{next}");
        let response = client.send("GET", &resource, &[], "");
        assert_eq!(response.status(), 200, "{resource}: {}", body(&response));
        let keys = body(&response)
            .replace(r#"{"PartitionKey":""#, "")
            .replace(r#"","RowKey":""#, "/")
            .replace(r#""}"#, "");
        let (_, keys) = keys.split_once('[').unwrap();
        pages.push(keys.trim_end_matches("]}").to_owned());
        let Some(partition) = header(&response, "x-ms-continuation-nextpartitionkey") else {
            return (pages, tokens);
        };
        next = format!("&NextPartitionKey={partition}");
        let row = header(&response, "x-ms-continuation-nextrowkey");
        if let Some(row) = row {
            next = format!("{next}&NextRowKey={row}");
        }
        tokens.push(row.is_some());
        assert!(pages.len() < 100, "the pages do not end: {pages:?}");
    }
}

#[test]
fn pages_have_the_chosen_number_of_entities() {
    let entities_max = |entities_max| Paging {
        entities_max,
        ..Paging::default()
    };
    let (found, _) = pages(&client(entities_max(4)), "");
    assert_eq!(found, ["/,/1,/2,a/", "a/1,a/2,b/,b/1", "b/2"]);
    let small = client(entities_max(3));
    let (found, tokens) = pages(&small, "$filter=RowKey%20eq%20'1'");
    assert_eq!(
        (&*found, &*tokens),
        (&["/1,a/1,b/1".to_owned()][..], &[][..])
    );
    // A smaller `$top` wins, a larger one does not.
    for (top, count) in [(2, 5), (7, 3)] {
        let (found, _) = pages(&small, &format!("$top={top}"));
        assert_eq!(found.len(), count, "{found:?}");
    }
}

#[test]
fn empty_pages_come_before_full_ones() {
    let client = client(Paging {
        empty_pages: true,
        entities_max: 5,
        ..Paging::default()
    });
    let (found, tokens) = pages(&client, "");
    assert_eq!(found, ["", "/,/1,/2,a/,a/1", "", "a/2,b/,b/1,b/2"]);
    assert_eq!(tokens, [true; 3]);
    let (found, _) = pages(&client, "$filter=PartitionKey%20eq%20'a'");
    assert_eq!(found, ["", "a/,a/1,a/2"]);
    let (found, tokens) = pages(&client, "$top=0");
    assert_eq!((found.len(), tokens.len()), (1, 0));
}

#[test]
fn pages_end_with_their_partition() {
    let client = client(Paging {
        page_per_partition: true,
        entities_max: 2,
        ..Paging::default()
    });
    let (found, tokens) = pages(&client, "");
    assert_eq!(found, ["/,/1", "/2", "a/,a/1", "a/2", "b/,b/1", "b/2"]);
    assert_eq!(tokens, [true, false, true, false, true]);
    let (found, tokens) = pages(&client, "$filter=RowKey%20eq%20'1'");
    assert_eq!(
        (&*found, &*tokens),
        (
            &["/1", "a/1", "b/1"].map(str::to_owned)[..],
            &[false; 2][..]
        )
    );
}

#[test]
fn pages_without_time_have_one_entity() {
    let client = client(Paging {
        max_query_time: Duration::ZERO,
        ..Paging::default()
    });
    let (found, _) = pages(&client, "");
    assert_eq!(
        found,
        ["/", "/1", "/2", "a/", "a/1", "a/2", "b/", "b/1", "b/2"]
    );
    let (found, _) = pages(&client, "$filter=v%20eq%202");
    assert_eq!(found, [""; 9]);
    let (found, _) = pages(
        &client,
        "$filter=PartitionKey%20eq%20'b'%20and%20RowKey%20eq%20'2'",
    );
    assert_eq!(found, ["b/2"]);

    // The same for tables.
    for name in ["abc", "zoo"] {
        let table = format!(r#"{{"TableName":"{name}"}}"#);
        assert_eq!(client.send("POST", "Tables", &[], &table).status(), 201);
    }
    let (mut found, mut next) = (String::new(), String::new());
    for page in 0..3 {
        let query = format!("Tables?$filter=TableName%20ne%20'people'{next}");
        let response = client.send("GET", &query, &[], "");
        found += body(&response);
        let token = header(&response, "x-ms-continuation-nexttablename");
        assert_eq!(token.is_some(), page < 2);
        next = format!("&NextTableName={}", token.unwrap_or_default());
    }
    assert_eq!(
        found,
        r#"{"value":[{"TableName":"abc"}]}{"value":[]}{"value":[{"TableName":"zoo"}]}"#
    );
}

/// A request for all entities of a table of a thousand, through a filter that takes tens of slices
/// to see them, and that none of them passes.
fn long_query() -> (Client, Request<Bytes>) {
    let client = Client::with_table();
    for number in 0..1000 {
        client.insert("p", &format!("{number:04}"), 1);
    }
    let filter = vec!["v+eq+2"; 3000].join("+or+");
    let request = client.signed("GET", &format!("/acct/people()?$filter={filter}"), &[], "");
    (client, request)
}

#[tokio::test]
async fn long_queries_let_other_requests_run() {
    let (client, query) = tokio::task::spawn_blocking(long_query).await.unwrap();
    let point = client.signed(
        "GET",
        "/acct/people(PartitionKey='p',RowKey='0001')",
        &[],
        "",
    );
    let mut answered = Vec::new();
    let query = client.service.call(query);
    tokio::pin!(query);
    // The query starts first, and is still running when the others are done.
    for _ in 0..10 {
        tokio::select! {
            biased;
            _ = &mut query => answered.push("query"),
            _ = client.service.call(point.clone()) => answered.push("point"),
        }
    }
    assert_eq!(answered, ["point"; 10]);
    let response = query.await;
    assert_eq!(body(&response), r#"{"value":[]}"#);
    assert_eq!(header(&response, "x-ms-continuation-nextrowkey"), None);
}

#[tokio::test(start_paused = true)]
async fn queries_end_when_their_time_is_over() {
    let (client, query) = tokio::task::spawn_blocking(long_query).await.unwrap();
    let query = client.service.call(query);
    tokio::pin!(query);
    let response = loop {
        // A second for each slice.
        tokio::select! {
            biased;
            response = &mut query => break response,
            () = tokio::time::advance(Duration::from_secs(1)) => {}
        }
    };
    assert_eq!(body(&response), r#"{"value":[]}"#);
    assert!(header(&response, "x-ms-continuation-nextrowkey").is_some());
}
