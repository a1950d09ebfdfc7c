//! The names of rolling tables.

use tablesdk::Timestamp;
use tablesdk::rolling::{Period, RollingTable};

use super::Transcript;

#[tokio::test]
async fn rolling_tables_are_named_as_documented() {
    let mut transcript = Transcript::new().await;
    let at: Timestamp = "2024-03-15T10:20:30Z".parse().unwrap();
    for period in [Period::Hour, Period::Day, Period::Month, Period::Year] {
        let service = &transcript.subject.service;
        let table = RollingTable::new(service, "Logins", period).at(at);
        let create = async |_: &_| table.create_table().await.unwrap();
        transcript.add(&format!("{period:?}"), create).await;
    }
    transcript.assert_is("rolling.http");
}
