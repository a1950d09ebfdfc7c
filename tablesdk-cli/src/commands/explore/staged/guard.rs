//! Which changes need to be forced: those of entities that the client keeps, and those that leave
//! entries of indexes stale. The rules are those of `tables put` and `tables rm`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tablesdk::{DynamicEntity, Error, TableClient};
use tablesdk_cli::own::{EntrySearch, Kept};
use tokio::sync::Mutex as SearchMutex;
use tokio::time::timeout;

use crate::escape::{harmless, key, shortened};
use crate::guard::Refusal;

/// Remembers for a while what was found in tables, since a search takes requests.
pub(crate) struct Keeper {
    searches: Mutex<BTreeMap<String, Search>>,
    /// How long a search may take. After that, a write needs to be forced: nothing says where in a
    /// partition an entry may be.
    patience: Duration,
}

struct Search {
    begun: Instant,
    /// Locked while a request of this table is awaited. Those of other tables do not wait for it.
    of_table: Arc<SearchMutex<OfTable>>,
}

struct OfTable {
    search: EntrySearch,
    /// The last partition of which the search took too long.
    slow: Option<String>,
}

impl Default for Keeper {
    fn default() -> Self {
        Self {
            searches: Mutex::default(),
            patience: PATIENCE,
        }
    }
}

impl Keeper {
    /// Why a write of these entities into a partition needs to be forced: of what is written, and
    /// of what is stored.
    pub(crate) async fn refusals(
        &self,
        table: &TableClient,
        partition: &str,
        entities: impl IntoIterator<Item = &DynamicEntity>,
    ) -> Result<Vec<Refusal>, Error> {
        let mut refusals: Vec<Refusal> = Vec::new();
        for entity in entities {
            let keys = key(entity.partition_key(), entity.row_key());
            let refusal = Refusal::of_entity(&keys, Kept::of(entity));
            refusals.extend(refusal.filter(|it| !refusals.contains(it)));
        }
        let of_table = self.of_table(table);
        let mut of_table = of_table.lock().await;
        let refusal = of_table.refusal(table.name(), partition, self.patience);
        refusals.extend(refusal.await?);
        Ok(refusals)
    }

    fn of_table(&self, table: &TableClient) -> Arc<SearchMutex<OfTable>> {
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        searches.retain(|_, it| it.begun.elapsed() < REMEMBERED);
        let name = table.name();
        if searches.len() == SEARCHES_MAX && !searches.contains_key(name) {
            searches.pop_first();
        }
        let search = searches.entry(name.to_owned()).or_insert_with(|| Search {
            begun: Instant::now(),
            of_table: Arc::new(SearchMutex::new(OfTable {
                search: EntrySearch::new(table),
                slow: None,
            })),
        });
        Arc::clone(&search.of_table)
    }
}

impl OfTable {
    async fn refusal(
        &mut self,
        table: &str,
        partition: &str,
        patience: Duration,
    ) -> Result<Option<Refusal>, Error> {
        if self.slow.as_deref() == Some(partition) {
            return Ok(Some(unknown(table, partition)));
        }
        let refusal = Refusal::of_table(table, &mut self.search, Some(partition));
        if let Ok(refusal) = timeout(patience, refusal).await {
            return refusal;
        }
        self.slow = Some(partition.to_owned());
        Ok(Some(unknown(table, partition)))
    }
}

/// The refusal of a write into a partition that was not looked at whole.
fn unknown(table: &str, partition: &str) -> Refusal {
    let partition = shortened(&harmless(partition), PARTITION_MAX);
    let seconds = PATIENCE.as_secs();
    Refusal {
        problem: format!(
            "{table}: to look for entries of indexes in the partition {partition} takes more than {seconds} seconds. This write leaves them as they are"
        ),
        mend: "run `table.repair::<E>()` with the struct of the entities, if it has indexes"
            .to_owned(),
    }
}

/// The repairs of other entities that are needed after a forced write.
pub(crate) fn mends(refusals: &[Refusal]) -> BTreeSet<String> {
    refusals.iter().map(|it| it.mend.clone()).collect()
}

const REMEMBERED: Duration = Duration::from_secs(60);
const SEARCHES_MAX: usize = 16;
const PATIENCE: Duration = Duration::from_secs(10);
const PARTITION_MAX: usize = 80;

#[cfg(test)]
mod tests {
    use tablesdk::TableServiceClient;
    use tablesdk_server::TableServer;
    use tablesdk_server::testing::{Fault, Op};

    use super::*;

    #[tokio::test]
    async fn a_partition_that_is_not_looked_at_whole_is_written_by_force_alone() {
        let server = TableServer::start().await.expect("it starts");
        let service = TableServiceClient::from_connection_string(&server.connection_string());
        let table = service.expect("it is valid").table("Employees");
        table.create_table().await.expect("it is new");
        let impatient = Keeper {
            patience: Duration::from_millis(1),
            ..Keeper::default()
        };
        let silence = server.faults().on(Op::QueryEntities);
        let silence = silence.inject(Fault::no_response());
        // Also when it is asked again, which sends nothing.
        for _ in 0..2 {
            let refusals = impatient.refusals(&table, "Sales", []).await;
            let refusals = refusals.expect("the wait is no error");
            let problems: Vec<_> = refusals.iter().map(|it| &*it.problem).collect();
            let [problem] = *problems else {
                panic!("{problems:?}");
            };
            assert!(problem.contains("in the partition Sales takes more than 10 seconds"));
        }
        assert!(silence.hits() <= 1);
        server.faults().clear();
        let patient = Keeper::default().refusals(&table, "Sales", []).await;
        assert_eq!(patient.expect("the table is there"), []);
    }
}
