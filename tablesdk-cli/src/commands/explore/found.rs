//! A page of entities, with what it has cost.

use std::time::{Duration, Instant};

use tablesdk::query::PageToken;
use tablesdk::{DynamicEntity, Error, Stored};
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;

use crate::commands::query::Asked;
use crate::requests::counted;

/// The entities of a page of the program, which several pages of the service may make up.
pub(super) struct Found {
    pub(super) entities: Vec<Stored<DynamicEntity>>,
    /// Where the next page begins.
    pub(super) next: Option<PageToken>,
    pub(super) requests: u32,
    pub(super) elapsed: Duration,
}

impl Found {
    /// Reads until a page is full, there are no more entities, or this number of answers came.
    pub(super) async fn read(
        asked: &Asked,
        token: Option<PageToken>,
        answers_max: usize,
    ) -> Result<Self, Error> {
        let started = Instant::now();
        let (read, requests) = counted(pages(asked, token, answers_max)).await;
        let (entities, next) = read?;
        Ok(Self {
            entities,
            next,
            requests,
            elapsed: started.elapsed(),
        })
    }
}

async fn pages(
    asked: &Asked,
    mut token: Option<PageToken>,
    answers_max: usize,
) -> Result<(Vec<Stored<DynamicEntity>>, Option<PageToken>), Error> {
    if let Some(key) = asked.selection.point() {
        let get = asked.table.get::<DynamicEntity>(key);
        let found = get.retry(asked.retry.clone()).await?;
        return Ok((found.into_iter().collect(), None));
    }
    let mut entities = Vec::new();
    let mut bytes = 0;
    for _ in 0..answers_max {
        let room = PAGE_ITEMS_MAX - entities.len();
        let page = asked.page(room, token).await?;
        bytes += page.items.iter().map(|entity| size(entity)).sum::<usize>();
        entities.extend(page.items);
        token = page.next;
        if token.is_none() || entities.len() >= PAGE_ITEMS_MAX || bytes >= BYTES_MAX {
            break;
        }
    }
    Ok((entities, token))
}

/// About how many bytes an entity takes.
fn size(entity: &DynamicEntity) -> usize {
    let properties = entity.properties().iter();
    let sizes = properties.map(|(name, value)| name.len() + value.as_ref().counted_bytes());
    sizes.sum()
}

/// The most bytes of entities on a page; the rest is on the next one. A response of the service has
/// at most 4 MiB.
const BYTES_MAX: usize = 8 << 20;
