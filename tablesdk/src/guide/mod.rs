//! Guides: one page for each subject that is too large for the documentation of one item. Tests run
//! every program in them.
//!
//! In reading order:
//!
//! <!-- guides -->
//! * [Ten minutes](ten_minutes): from an empty crate to a program that stores, reads, queries and
//!   changes typed entities, with a test, on Azure.
//! * [Entities](entities): the two keys, the properties that a struct stores, and how to change a
//!   struct over the years.
//! * [Queries](queries): what they read, what that costs, and how to see the cost before a request
//!   is sent.
//! * [Paging](paging): streams, pages and continuation tokens.
//! * [Batches and bulk](batches_and_bulk): several changes in one transaction, or many changes
//!   without one.
//! * [Concurrency](concurrency): what each verb does when another client writes the same entity,
//!   and how to change an entity without losing updates.
//! * [Errors and retries](errors_and_retries): how a write can end when a response is lost, what an
//!   error contains, and which requests the client retries.
//! * [Messages of errors](error_messages): what an error says, which names operations have, and the
//!   messages of real failures.
//! * [What does it cost](costs): how requests become a bill, a program that counts its own, and how
//!   to make it cheaper.
//! * [Choosing a pattern](choosing): from what a program needs to the pattern, its cost and its
//!   alternative.
//! * [Patterns](patterns): the page for each section of the table design guide, and what each way
//!   costs.
//! * [Design guide](design_guide): the patterns of the table design guide in its order, each with a
//!   program and the requests that it sends.
//! * [Compound key](compound_key): an entity and what belongs to it, by one query of a key range.
//! * [Log tail](log_tail): the newest entities of a partition, by one small request.
//! * [Archive](archive): entities that move into another table, and are never in neither.
//! * [Changing keys](changing_keys): an entity that moves to another key, and is never under
//!   neither.
//! * [High volume delete](high_volume_delete): very many entities, deleted as a table or by a
//!   query.
//! * [Expiry](expiry): entities that expire one by one, are then hidden, and are deleted later.
//! * [Data series](data_series): a series of values in one entity, each of which is written alone.
//! * [Wide entities](wide_and_large_entities): more than 252 properties or 1 MiB, read and written
//!   as one entity.
//! * [Large values](large_values): a value over 64 KiB in chunks, compressed, or in an object
//!   store.
//! * [Anti-patterns](anti_patterns): keys that only grow, and logs in a table.
//! * [Leases](leases): one client at a time does something, and another one takes over when it
//!   stops.
//! * [Sequences](sequences): numbers that are never given twice, with gaps or without.
//! * [Counters](counters): a number that many clients add to at the same time.
//! * [Relationships](relationships): one-to-many, one-to-one, joins in the client and inheritance,
//!   in the terms of the table design guide.
//! * [Indexes](indexes): finding entities by other properties than their key, in a partition or in
//!   the whole table.
//! * [Outbox](outbox): changes in several partitions and messages, which follow a transaction for
//!   certain.
//! * [Derived data](derived_data): totals, views, caches and files that follow the entities.
//! * [Encryption](encryption): properties that neither the service nor its operators can read.
//! * [Stored forms](stored_forms): what the client stores beside the entities of a program, for
//!   programs in other languages and for operators.
//! * [Testing](testing): the real protocol and the rules of the service, in the process of the
//!   test.
//! * [Credentials](credentials): how a client authenticates, and how to replace a credential while
//!   the client runs.
//! * [Observability](observability): a runbook, logs, spans, reports, request ids.
//! * [Web services](web_services): a client in the state of a program, statuses for errors,
//!   versions and page tokens over HTTP, a repository behind a trait.
//! * [Cosmos DB](cosmos_db): how Azure Cosmos DB for Table differs from Azure Table storage.
//! * [Emulators](emulators): how Azurite, the emulator of the Azure tools, differs from the
//!   service.
//! * [Official SDKs](official_sdks): the verbs of .NET, Python, JavaScript, Go and Java beside
//!   ours, and how to share tables with programs that use them.
//! * [Moving from .NET](moving_from_dotnet): ten tasks with `Azure.Data.Tables` and here, the names
//!   of the older SDK, and differences that change what is stored.
//! * [Moving from Python and JavaScript](moving_from_python_and_javascript): one program in three
//!   languages, and what `azure-data-tables` and `@azure/data-tables` have stored.
//! * [Moving from `azure_data_tables`](moving_from_the_old_crate): the verbs and types of version
//!   0.21 of the unofficial crate, which is no longer updated, beside ours.
//! <!-- end of guides -->

// In reading order. A page begins with its title, a colon, and its subject in one sentence. The
// list above, the lines with the previous and the next page, and the table of the front page are
// generated from both: see `tests/tidy/lists.rs`.
//
// A figure is a data URL: rustdoc takes the first definition of its link, and shows no files. The
// page itself defines the link as the file, for readers of the repository and of the book.

#[doc = include_str!("ten_minutes.md")]
#[doc = "\n\n---\n\n[All guides](crate::guide) · Next: [Entities](crate::guide::entities)"]
pub mod ten_minutes {}

#[doc = include_str!("entities.md")]
#[doc = "\n\n---\n\nBefore: [Ten minutes](crate::guide::ten_minutes) · [All guides](crate::guide) · Next: [Queries](crate::guide::queries)"]
pub mod entities {}

#[doc(alias("order_by", "contains", "group_by"))]
#[doc = include_str!("queries.md")]
#[doc = "\n\n---\n\nBefore: [Entities](crate::guide::entities) · [All guides](crate::guide) · Next: [Paging](crate::guide::paging)"]
pub mod queries {}

#[doc = include_str!("paging.md")]
#[doc = "\n\n---\n\nBefore: [Queries](crate::guide::queries) · [All guides](crate::guide) · Next: [Batches and bulk](crate::guide::batches_and_bulk)"]
pub mod paging {}

#[doc = include_str!("batches_and_bulk.md")]
#[doc = "\n\n---\n\nBefore: [Paging](crate::guide::paging) · [All guides](crate::guide) · Next: [Concurrency](crate::guide::concurrency)"]
pub mod batches_and_bulk {}

#[doc = include_str!("concurrency.md")]
#[doc = "\n\n---\n\nBefore: [Batches and bulk](crate::guide::batches_and_bulk) · [All guides](crate::guide) · Next: [Errors and retries](crate::guide::errors_and_retries)"]
pub mod concurrency {}

#[doc = include_str!("figures/lost-response.md")]
#[doc = include_str!("errors_and_retries.md")]
#[doc = "\n\n---\n\nBefore: [Concurrency](crate::guide::concurrency) · [All guides](crate::guide) · Next: [Messages of errors](crate::guide::error_messages)"]
pub mod errors_and_retries {}

#[doc = include_str!("error_messages.md")]
#[doc = "\n\n---\n\nBefore: [Errors and retries](crate::guide::errors_and_retries) · [All guides](crate::guide) · Next: [What does it cost](crate::guide::costs)"]
pub mod error_messages {}

#[doc(alias("billing", "price"))]
#[doc = include_str!("costs.md")]
#[doc = "\n\n---\n\nBefore: [Messages of errors](crate::guide::error_messages) · [All guides](crate::guide) · Next: [Choosing a pattern](crate::guide::choosing)"]
pub mod costs {}

#[doc = include_str!("choosing.md")]
#[doc = "\n\n---\n\nBefore: [What does it cost](crate::guide::costs) · [All guides](crate::guide) · Next: [Patterns](crate::guide::patterns)"]
pub mod choosing {}

#[doc = include_str!("figures/pattern-denormalization.md")]
#[doc = include_str!("figures/pattern-map.md")]
#[doc = include_str!("patterns.md")]
#[doc = "\n\n---\n\nBefore: [Choosing a pattern](crate::guide::choosing) · [All guides](crate::guide) · Next: [Design guide](crate::guide::design_guide)"]
pub mod patterns {}

#[doc = include_str!("figures/pattern-index-entities.md")]
#[doc = include_str!("design_guide.md")]
#[doc = "\n\n---\n\nBefore: [Patterns](crate::guide::patterns) · [All guides](crate::guide) · Next: [Compound key](crate::guide::compound_key)"]
pub mod design_guide {}

#[doc = include_str!("figures/pattern-compound-key.md")]
#[doc = include_str!("compound_key.md")]
#[doc = "\n\n---\n\nBefore: [Design guide](crate::guide::design_guide) · [All guides](crate::guide) · Next: [Log tail](crate::guide::log_tail)"]
pub mod compound_key {}

#[doc = include_str!("figures/pattern-log-tail.md")]
#[doc = include_str!("log_tail.md")]
#[doc = "\n\n---\n\nBefore: [Compound key](crate::guide::compound_key) · [All guides](crate::guide) · Next: [Archive](crate::guide::archive)"]
pub mod log_tail {}

#[doc = include_str!("figures/pattern-archive.md")]
#[doc = include_str!("archive.md")]
#[doc = "\n\n---\n\nBefore: [Log tail](crate::guide::log_tail) · [All guides](crate::guide) · Next: [Changing keys](crate::guide::changing_keys)"]
pub mod archive {}

#[doc = include_str!("changing_keys.md")]
#[doc = "\n\n---\n\nBefore: [Archive](crate::guide::archive) · [All guides](crate::guide) · Next: [High volume delete](crate::guide::high_volume_delete)"]
pub mod changing_keys {}

#[doc = include_str!("figures/pattern-high-volume-delete.md")]
#[doc = include_str!("high_volume_delete.md")]
#[doc = "\n\n---\n\nBefore: [Changing keys](crate::guide::changing_keys) · [All guides](crate::guide) · Next: [Expiry](crate::guide::expiry)"]
pub mod high_volume_delete {}

#[doc = include_str!("figures/pattern-expiry.md")]
#[doc = include_str!("expiry.md")]
#[doc = "\n\n---\n\nBefore: [High volume delete](crate::guide::high_volume_delete) · [All guides](crate::guide) · Next: [Data series](crate::guide::data_series)"]
pub mod expiry {}

#[doc = include_str!("figures/pattern-data-series.md")]
#[doc = include_str!("data_series.md")]
#[doc = "\n\n---\n\nBefore: [Expiry](crate::guide::expiry) · [All guides](crate::guide) · Next: [Wide entities](crate::guide::wide_and_large_entities)"]
pub mod data_series {}

#[doc = include_str!("figures/pattern-wide-entity.md")]
#[doc = include_str!("wide_and_large_entities.md")]
#[doc = "\n\n---\n\nBefore: [Data series](crate::guide::data_series) · [All guides](crate::guide) · Next: [Large values](crate::guide::large_values)"]
pub mod wide_and_large_entities {}

#[doc = include_str!("figures/pattern-large-value.md")]
#[doc = include_str!("large_values.md")]
#[doc = "\n\n---\n\nBefore: [Wide entities](crate::guide::wide_and_large_entities) · [All guides](crate::guide) · Next: [Anti-patterns](crate::guide::anti_patterns)"]
pub mod large_values {}

#[doc = include_str!("figures/pattern-append.md")]
#[doc = include_str!("figures/pattern-log-data.md")]
#[doc = include_str!("anti_patterns.md")]
#[doc = "\n\n---\n\nBefore: [Large values](crate::guide::large_values) · [All guides](crate::guide) · Next: [Leases](crate::guide::leases)"]
pub mod anti_patterns {}

#[doc = include_str!("figures/pattern-lease.md")]
#[doc = include_str!("leases.md")]
#[doc = "\n\n---\n\nBefore: [Anti-patterns](crate::guide::anti_patterns) · [All guides](crate::guide) · Next: [Sequences](crate::guide::sequences)"]
pub mod leases {}

#[doc = include_str!("figures/pattern-sequence.md")]
#[doc = include_str!("sequences.md")]
#[doc = "\n\n---\n\nBefore: [Leases](crate::guide::leases) · [All guides](crate::guide) · Next: [Counters](crate::guide::counters)"]
pub mod sequences {}

#[doc = include_str!("figures/pattern-counter.md")]
#[doc = include_str!("counters.md")]
#[doc = "\n\n---\n\nBefore: [Sequences](crate::guide::sequences) · [All guides](crate::guide) · Next: [Relationships](crate::guide::relationships)"]
pub mod counters {}

#[doc = include_str!("relationships.md")]
#[doc = "\n\n---\n\nBefore: [Counters](crate::guide::counters) · [All guides](crate::guide) · Next: [Indexes](crate::guide::indexes)"]
pub mod relationships {}

#[doc = include_str!("figures/pattern-index.md")]
#[doc = include_str!("figures/pattern-index-over-partitions.md")]
#[doc = include_str!("figures/pattern-unique.md")]
#[doc = include_str!("indexes.md")]
#[doc = "\n\n---\n\nBefore: [Relationships](crate::guide::relationships) · [All guides](crate::guide) · Next: [Outbox](crate::guide::outbox)"]
pub mod indexes {}

#[doc = include_str!("figures/outbox.md")]
#[doc = include_str!("outbox.md")]
#[doc = "\n\n---\n\nBefore: [Indexes](crate::guide::indexes) · [All guides](crate::guide) · Next: [Derived data](crate::guide::derived_data)"]
pub mod outbox {}

#[doc(alias("cache", "materialized view", "summary", "aggregate"))]
#[doc = include_str!("derived_data.md")]
#[doc = "\n\n---\n\nBefore: [Outbox](crate::guide::outbox) · [All guides](crate::guide) · Next: [Encryption](crate::guide::encryption)"]
pub mod derived_data {}

// Its programs need the feature, and links lead to the page in any case.
#[cfg_attr(feature = "encryption", doc = include_str!("encryption.md"))]
#[cfg_attr(
    not(feature = "encryption"),
    doc = "Properties that only clients with a key can read. The documentation with the feature `encryption` contains the guide."
)]
#[doc = "\n\n---\n\nBefore: [Derived data](crate::guide::derived_data) · [All guides](crate::guide) · Next: [Stored forms](crate::guide::stored_forms)"]
pub mod encryption {}

#[doc = include_str!("stored_forms.md")]
#[doc = "\n\n---\n\nBefore: [Encryption](crate::guide::encryption) · [All guides](crate::guide) · Next: [Testing](crate::guide::testing)"]
pub mod stored_forms {}

#[doc = include_str!("figures/test-kit.md")]
#[doc = include_str!("testing.md")]
#[doc = "\n\n---\n\nBefore: [Stored forms](crate::guide::stored_forms) · [All guides](crate::guide) · Next: [Credentials](crate::guide::credentials)"]
pub mod testing {}

#[doc = include_str!("credentials.md")]
#[doc = "\n\n---\n\nBefore: [Testing](crate::guide::testing) · [All guides](crate::guide) · Next: [Observability](crate::guide::observability)"]
pub mod credentials {}

#[doc = include_str!("observability.md")]
#[doc = "\n\n---\n\nBefore: [Credentials](crate::guide::credentials) · [All guides](crate::guide) · Next: [Web services](crate::guide::web_services)"]
pub mod observability {}

#[doc = include_str!("web_services.md")]
#[doc = "\n\n---\n\nBefore: [Observability](crate::guide::observability) · [All guides](crate::guide) · Next: [Cosmos DB](crate::guide::cosmos_db)"]
pub mod web_services {}

#[doc = include_str!("cosmos_db.md")]
#[doc = "\n\n---\n\nBefore: [Web services](crate::guide::web_services) · [All guides](crate::guide) · Next: [Emulators](crate::guide::emulators)"]
pub mod cosmos_db {}

#[doc = include_str!("emulators.md")]
#[doc = "\n\n---\n\nBefore: [Cosmos DB](crate::guide::cosmos_db) · [All guides](crate::guide) · Next: [Official SDKs](crate::guide::official_sdks)"]
pub mod emulators {}

#[doc = include_str!("official_sdks.md")]
#[doc = "\n\n---\n\nBefore: [Emulators](crate::guide::emulators) · [All guides](crate::guide) · Next: [Moving from .NET](crate::guide::moving_from_dotnet)"]
pub mod official_sdks {}

#[doc = include_str!("moving_from_dotnet.md")]
#[doc = "\n\n---\n\nBefore: [Official SDKs](crate::guide::official_sdks) · [All guides](crate::guide) · Next: [Moving from Python and JavaScript](crate::guide::moving_from_python_and_javascript)"]
pub mod moving_from_dotnet {}

#[doc = include_str!("moving_from_python_and_javascript.md")]
#[doc = "\n\n---\n\nBefore: [Moving from .NET](crate::guide::moving_from_dotnet) · [All guides](crate::guide) · Next: [Moving from `azure_data_tables`](crate::guide::moving_from_the_old_crate)"]
pub mod moving_from_python_and_javascript {}

#[doc = include_str!("moving_from_the_old_crate.md")]
#[doc = "\n\n---\n\nBefore: [Moving from Python and JavaScript](crate::guide::moving_from_python_and_javascript) · [All guides](crate::guide)"]
pub mod moving_from_the_old_crate {}
