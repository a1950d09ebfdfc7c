//! Which changes need to be forced: those of entities that the client keeps, and those that leave entries of indexes stale. The rules are
//! those of `tables put` and `tables rm`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tablesdk::{DynamicEntity, Error, TableClient};
use tablesdk_cli::own::{EntrySearch, Kept};
use tokio::sync::Mutex as SearchMutex;

use crate::escape::key;
use crate::guard::Refusal;

/// Remembers for a while what was found in tables, since a search takes requests.
#[derive(Default)]
pub(crate) struct Keeper {
    searches: Mutex<BTreeMap<String, Search>>,
}

struct Search {
    begun: Instant,
    /// Locked while a request of this table is awaited. Those of other tables do not wait for it.
    search: Arc<SearchMutex<EntrySearch>>,
}

impl Keeper {
    /// Why a write of these entities into a partition needs to be forced: of what is written, and of what is stored.
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
        let search = self.of_table(table);
        let mut search = search.lock().await;
        let refusal = Refusal::of_table(table.name(), &mut search, Some(partition)).await?;
        refusals.extend(refusal);
        Ok(refusals)
    }

    fn of_table(&self, table: &TableClient) -> Arc<SearchMutex<EntrySearch>> {
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        searches.retain(|_, it| it.begun.elapsed() < REMEMBERED);
        let name = table.name();
        if searches.len() == SEARCHES_MAX && !searches.contains_key(name) {
            searches.pop_first();
        }
        let search = searches.entry(name.to_owned()).or_insert_with(|| Search {
            begun: Instant::now(),
            search: Arc::new(SearchMutex::new(EntrySearch::new(table))),
        });
        Arc::clone(&search.search)
    }
}

/// What mends other entities after a forced write.
pub(crate) fn mends(refusals: &[Refusal]) -> BTreeSet<String> {
    refusals.iter().map(|it| it.mend.clone()).collect()
}

const REMEMBERED: Duration = Duration::from_secs(60);
const SEARCHES_MAX: usize = 16;
