//! Tables for periods of time: names, ranges, and what is dropped.

use std::time::{Duration, SystemTime};

use futures::{StreamExt as _, TryStreamExt as _};
use harness::client;
use tablesdk::query::EntityStream;
use tablesdk::rolling::{Period, RollingTable};
use tablesdk::{
    DynamicEntity, Error, ErrorCode, ErrorKind, Stored, TableClient, TableEntity,
    TableServiceClient, Timestamp,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use crate::on_both_transports;

#[derive(Debug, TableEntity)]
#[table(partition_key = "{user}", row_key = "{at}")]
struct Login {
    user: String,
    at: Timestamp,
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn all(table: &TableClient) -> EntityStream<Stored<Login>> {
    table.query::<Login>().stream()
}

/// The days of the logins that are found in a range.
async fn days(logins: &RollingTable, range: impl std::ops::RangeBounds<Timestamp>) -> Vec<String> {
    let found: Vec<_> = logins.stream(range, all).try_collect().await.unwrap();
    let days = found
        .iter()
        .map(|login| login.at.to_string()[..10].to_owned());
    days.collect()
}

/// Daily tables of these days, with a login at noon in each.
async fn logins(service: &TableServiceClient, days: &[&str]) -> RollingTable {
    let logins = RollingTable::new(service, "Logins", Period::Day);
    for day in days {
        let at = at(&format!("{day}T12:00:00Z"));
        let table = logins.at(at);
        table.create_table().await.unwrap();
        let login = Login {
            user: "ann".to_owned(),
            at,
        };
        table.insert(&login).await.unwrap();
    }
    logins
}

const DAYS: [&str; 5] = [
    "2024-03-13",
    "2023-12-31",
    "2024-02-29",
    "2024-03-01",
    "2024-03-15",
];

#[test]
fn a_name_is_the_prefix_and_the_digits_of_the_period_in_utc() {
    let service = client(&TableServer::in_process());
    let rolling = |period| RollingTable::new(&service, "L", period);
    for (instant, digits) in [
        ("2024-02-29T23:59:59.9999999Z", "2024022923"),
        ("2024-03-01T00:00:00Z", "2024030100"),
        ("2024-01-01T01:00:00+02:00", "2023123123"),
        ("1601-01-01T00:00:00Z", "1601010100"),
        ("9999-12-31T23:59:59Z", "9999123123"),
    ] {
        let periods = [
            (Period::Hour, 10),
            (Period::Day, 8),
            (Period::Month, 6),
            (Period::Year, 4),
        ];
        for (period, length) in periods {
            let table = rolling(period).at(at(instant));
            assert_eq!(table.name(), format!("L{}", &digits[..length]));
        }
    }
    let second_day = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
    assert_eq!(rolling(Period::Day).at(second_day).name(), "L19700102");
    let evening = time::macros::datetime!(2024-03-15 23:30 -02:00);
    assert_eq!(rolling(Period::Day).at(evening).name(), "L20240316");
}

#[tokio::test]
async fn a_prefix_that_breaks_a_rule_is_refused_before_anything_is_sent() {
    let server = TableServer::in_process();
    let (service, journal) = (client(&server), server.journal());
    let long = "L".repeat(56);
    let no_letter = "does not start with a letter";
    let other = "has a character that is neither a letter nor a digit";
    let digit = "ends with a digit, and the digits of the period follow it";
    let longer = "is longer than 55 characters: the period has 8 digits";
    for (prefix, period, rule) in [
        ("", Period::Year, no_letter),
        ("9Logins", Period::Year, no_letter),
        ("Log_ins", Period::Year, other),
        ("Anmeldungä", Period::Year, other),
        ("Logins2", Period::Year, digit),
        (&long, Period::Day, longer),
    ] {
        let logins = RollingTable::new(&service, prefix, period);
        let now = at("2024-03-15");
        let expected = format!("the prefix {prefix:?} of a rolling table {rule}");
        let (query, read) = (logins.at(now).query::<Login>(), logins.stream(now.., all));
        for error in [
            logins.at(now).create_table().await.unwrap_err(),
            query.collect().await.unwrap_err(),
            read.try_collect::<Vec<_>>().await.unwrap_err(),
            logins.drop_before(now).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Input);
            assert!(error.to_string().ends_with(&expected), "{error}");
        }
    }
    let longest = RollingTable::new(&service, &long[1..], Period::Day);
    assert_eq!(journal.requests().count(), 0);
    longest.at(at("2024-03-15")).create_table().await.unwrap();
    let dropped = longest.drop_before(at("2024-03-16")).await;
    assert_eq!(dropped.unwrap().len(), 1);
}

#[tokio::test]
async fn an_instant_that_no_timestamp_has_is_refused() {
    let service = client(&TableServer::in_process());
    let logins = RollingTable::new(&service, "Logins", Period::Day);
    let early = time::macros::datetime!(1600-12-31 23:59 UTC);
    let read = logins.stream(early.., all);
    for error in [
        logins.at(early).create_table().await.unwrap_err(),
        read.try_collect::<Vec<_>>().await.unwrap_err(),
        logins.drop_before(early).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Input);
        let text = error.to_string();
        assert!(text.contains("lies outside 1601-01-01"), "{text}");
    }
}

on_both_transports! {
    async fn a_range_is_read_table_by_table_the_oldest_first(subject: Subject) {
        let logins = logins(&subject.service, &DAYS).await;
        // Neither are tables of the series.
        for other in ["LoginsArchive", "Logins202403", "Logins20241399", "OtherLogins20240301"] {
            subject.service.table(other).create_table().await.unwrap();
        }
        assert_eq!(
            days(&logins, ..).await,
            ["2023-12-31", "2024-02-29", "2024-03-01", "2024-03-13", "2024-03-15"]
        );
        assert_eq!(days(&logins, at("2024-02-29T13:00Z")..at("2024-03-13")).await, ["2024-02-29", "2024-03-01"]);
        assert_eq!(days(&logins, at("2024-02-29")..=at("2024-03-13")).await, ["2024-02-29", "2024-03-01", "2024-03-13"]);
        assert_eq!(days(&logins, at("2024-03-14")..).await, ["2024-03-15"]);
        assert!(days(&logins, at("2024-03-02")..at("2024-03-13")).await.is_empty());
        assert!(days(&logins, at("2024-03-01")..at("2024-03-01")).await.is_empty());
        let error = logins.at(at("2024-03-02")).query::<Login>().collect().await.unwrap_err();
        assert!(error.is_table_not_found());
    }

    async fn tables_of_past_periods_are_dropped(subject: Subject) {
        let service = &subject.service;
        let logins = logins(service, &DAYS).await;
        let others = ["Logins00000101", "Logins2022", "Logins202201", "Logins20220230", "Logins2022010112", "LoginsX20220101"];
        for other in others {
            service.table(other).create_table().await.unwrap();
        }
        let noon = at("2024-03-01T12:00Z");
        assert_eq!(logins.drop_before(noon).await.unwrap(), ["Logins20231231", "Logins20240229"]);
        assert!(logins.drop_before(noon).await.unwrap().is_empty());
        assert_eq!(logins.drop_before(at("2024-03-02")).await.unwrap(), ["Logins20240301"]);
        let left = service.tables().starting_with("Logins").collect().await.unwrap();
        assert!(others.iter().all(|other| left.contains(&(*other).to_owned())), "{left:?}");
        assert_eq!(left.len(), others.len() + 2);
    }
}

#[tokio::test]
async fn the_requests_are_one_list_and_one_for_each_table() {
    let server = TableServer::in_process();
    let (service, journal) = (client(&server), server.journal());
    let logins = logins(&service, &DAYS).await;
    journal.clear();
    logins.at(at("2024-03-15"));
    assert_eq!(journal.requests().count(), 0);
    assert_eq!(days(&logins, at("2024-03-01")..).await.len(), 3);
    assert_eq!(journal.requests().count(), 4);
    journal.clear();
    assert_eq!(logins.drop_before(at("2024-03-01")).await.unwrap().len(), 2);
    assert_eq!(journal.requests().count(), 3);
}

#[tokio::test]
async fn a_table_that_is_dropped_meanwhile_is_passed_over() {
    let server = TableServer::in_process();
    let logins = logins(&client(&server), &DAYS).await;
    let dropped = Fault::error(ErrorCode::TableNotFound);
    let queries = server.faults().on(Op::QueryEntities);
    let injected = queries.table("Logins20240301").inject(dropped);
    let days = days(&logins, at("2024-02-01")..).await;
    assert_eq!(days, ["2024-02-29", "2024-03-13", "2024-03-15"]);
    assert_eq!(injected.hits(), 1);
}

#[tokio::test]
async fn an_unreadable_entity_does_not_end_the_stream_and_a_refusal_does() {
    let server = TableServer::in_process();
    let logins = logins(&client(&server), &DAYS).await;
    let odd = DynamicEntity::new("ann", "no instant");
    logins.at(at("2024-03-01")).insert(&odd).await.unwrap();
    let items: Vec<_> = logins.stream(at("2024-03-01").., all).collect().await;
    let kinds = items
        .iter()
        .map(|item| item.as_ref().err().map(Error::kind));
    let kinds: Vec<_> = kinds.collect();
    assert_eq!(kinds, [None, Some(ErrorKind::Data), None, None]);

    let denied = || Fault::error(ErrorCode::AuthorizationFailure);
    let queries = server.faults().on(Op::QueryEntities);
    queries.table("Logins20240313").inject(denied());
    let items: Vec<_> = logins.stream(at("2024-03-02").., all).collect().await;
    assert_eq!(items.len(), 1);
    assert!(items[0].as_ref().unwrap_err().is_denied());
    server.faults().on(Op::QueryTables).inject(denied());
    let items: Vec<_> = logins.stream(Timestamp::MIN.., all).collect().await;
    assert_eq!(items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_drop_that_fails_is_called_again() {
    let server = TableServer::in_process();
    let logins = logins(&client(&server), &DAYS).await;
    let faults = server.faults();
    let denied = Fault::error(ErrorCode::AuthorizationFailure);
    let denied = faults.on(Op::DeleteTable).nth(2).inject(denied);
    let error = logins.drop_before(at("2024-03-14")).await.unwrap_err();
    assert!(error.is_denied());
    assert_eq!((error.table(), denied.hits()), (Some("Logins20240229"), 1));
    faults.clear();
    // A lost response: the retry does not find the table, and this call has deleted it.
    faults.next(Op::DeleteTable, Fault::lost_response());
    let dropped = logins.drop_before(at("2024-03-14")).await.unwrap();
    let rest = ["Logins20240229", "Logins20240301", "Logins20240313"];
    assert_eq!(dropped, rest);
}
