//! The tools that write: one entity each, and under the ETag that the agent has read.

use rmcp::model::JsonObject;
use serde_json::json;
use tablesdk::{DynamicEntity, ETag, Stored, TableClient};
use tablesdk_cli::lines::Line;
use tablesdk_cli::own::{EntrySearch, Kept};

use super::answer::View;
use super::server::Server;
use super::tools::{ChangeEntity, DeleteEntity, InsertEntity};
use crate::commands::get::existing;
use crate::error::AnyError;
use crate::escape::key;

impl Server {
    pub(super) async fn insert_entity(&self, asked: InsertEntity) -> Result<JsonObject, AnyError> {
        let (table, entity) = self.given(&asked.table, &asked.entity)?;
        refuse_entries(&table, entity.partition_key()).await?;
        let inserted = table.insert(&entity).await?;
        Ok(version(inserted.etag()))
    }

    pub(super) async fn replace_entity(&self, asked: ChangeEntity) -> Result<JsonObject, AnyError> {
        let etag = asked.etag.parse::<ETag>()?;
        let (table, entity) = self.given(&asked.table, &asked.entity)?;
        let read = current(&table, (entity.partition_key(), entity.row_key()), &etag).await?;
        // The agent may have seen no more than the beginning of a value, and may not know that
        // there is more.
        let mut lost = View::default().of(&read).cut.into_iter();
        if let Some(lost) = lost.find(|name| !asked.entity.contains_key(name)) {
            let problem = format!(
                "the replace would remove {lost:?}, whose value is long: merge_entity leaves it as it is, and null removes it"
            );
            return Err(problem.into());
        }
        Ok(version(&table.replace_if(&entity, &etag).await?))
    }

    pub(super) async fn merge_entity(&self, asked: ChangeEntity) -> Result<JsonObject, AnyError> {
        let etag = asked.etag.parse::<ETag>()?;
        let (table, entity) = self.given(&asked.table, &asked.entity)?;
        current(&table, (entity.partition_key(), entity.row_key()), &etag).await?;
        Ok(version(&table.merge_if(&entity, &etag).await?))
    }

    pub(super) async fn delete_entity(&self, asked: DeleteEntity) -> Result<JsonObject, AnyError> {
        let etag = asked.etag.parse::<ETag>()?;
        let table = self.service.table(asked.table);
        let key = (asked.partition_key.as_str(), asked.row_key.as_str());
        current(&table, key, &etag).await?;
        let is_deleted = table.delete(key).if_match(&etag).await?;
        let mut answer = JsonObject::new();
        answer.insert("deleted".to_owned(), is_deleted.into());
        Ok(answer)
    }

    /// The table and the entity of the arguments, which the client of the library does not keep.
    fn given(
        &self,
        table: &str,
        entity: &JsonObject,
    ) -> Result<(TableClient, DynamicEntity), AnyError> {
        let line = json!({ "table": table, "entity": entity }).to_string();
        let Line::Entity { table, entity } = Line::read(line.as_bytes())? else {
            return Err("the arguments are no entity of a table".into());
        };
        refuse_kept(&entity)?;
        Ok((self.service.table(table), entity))
    }
}

/// The entity that is to be changed, as the agent has read it.
async fn current(
    table: &TableClient,
    keys: (&str, &str),
    etag: &ETag,
) -> Result<Stored<DynamicEntity>, AnyError> {
    let read = existing::<DynamicEntity>(table, keys).await?;
    if read.etag() != etag {
        let key = key(keys.0, keys.1);
        return Err(format!("{key} was changed since it was read: read it again").into());
    }
    refuse_kept(&read)?;
    refuse_entries(table, keys.0).await?;
    Ok(read)
}

fn refuse_kept(entity: &DynamicEntity) -> Result<(), AnyError> {
    let Some(kept) = Kept::of(entity) else {
        return Ok(());
    };
    let key = key(entity.partition_key(), entity.row_key());
    Err(format!("{key} is {kept}, which the client of tablesdk keeps: nothing is written").into())
}

/// Entries of an entity would become stale, and an entity without them would not be found.
async fn refuse_entries(table: &TableClient, partition: &str) -> Result<(), AnyError> {
    let Some(kept) = EntrySearch::new(table).first(Some(partition)).await? else {
        return Ok(());
    };
    let table = table.name();
    let problem = format!("{table} contains {kept}, which this write leaves as it is");
    Err(format!("{problem}: nothing is written").into())
}

fn version(etag: &ETag) -> JsonObject {
    let mut answer = JsonObject::new();
    answer.insert("etag".to_owned(), etag.as_str().into());
    answer
}
