//! The options of a single call: its deadline and its retry policy replace those of the client, for
//! every action and query.

use std::time::Duration;

use harness::Subject;
use harness::proxy::Reply;
use tablesdk::service_properties::ServiceProperties;
use tablesdk::{Error, ErrorKind, RetryPolicy, Stored, TableClient, TableServiceClient};
use tablesdk_server::testing::{Fault, Op};
use tokio::time::Instant;

use crate::{Employee, start};

const SECOND: Duration = Duration::from_secs(1);

fn key() -> tablesdk::key::Key<Employee> {
    Employee::key("Sales", "1")
}

async fn stored(table: &TableClient) -> Stored<Employee> {
    table.insert(&Employee::ada()).await.unwrap()
}

/// The error of each action and query, called with a setter of the options.
macro_rules! each_error {
    ($table:expr, $service:expr, $stored:expr, $option:ident($value:expr)) => {{
        let (table, service): (&TableClient, &TableServiceClient) = ($table, $service);
        let ada: Employee = Stored::clone($stored).into_inner();
        let query = || table.query::<Employee>().partition("Sales").$option($value);
        let (mut one, mut two) = ($stored.clone(), $stored.clone());
        let properties = ServiceProperties::default();
        let ranges = query().row_ranges(["5"]).parallel(1);
        let mut errors: Vec<(&str, Error)> = vec![
            ("collect", query().collect().await.unwrap_err()),
            ("page", query().page(None).await.unwrap_err()),
            ("count", query().count().await.unwrap_err()),
            ("one", query().one().await.unwrap_err()),
            ("partitions", query().partitions(["Sales"]).collect().await.unwrap_err()),
            ("ranges", ranges.$option($value).collect().await.unwrap_err()),
            ("tables", service.tables().$option($value).collect().await.unwrap_err()),
        ];
        each_error! { errors, $option($value),
            "insert" => table.insert(&ada),
            "get" => table.get(key()),
            "resolve" => table.get(key()).resolve(|_| Ok(())),
            "get_many" => table.get_many([key()]),
            "replace" => table.replace(&mut one),
            "upsert" => table.upsert_merge(&ada),
            "patch" => table.patch(key()).set(|e| e.age, 37),
            "delete" => table.delete(key()),
            "move_to" => table.move_to(&service.table("Other"), $stored.clone()),
            "modify" => table.modify(key(), Employee::grow_older),
            "batch" => table.batch("Sales").merge(&mut two),
            "clean_up_markers" => table.clean_up_markers("Sales"),
            "create_table" => table.create_table(),
            "if_missing" => table.create_table().if_missing(),
            "delete_table" => table.delete_table(),
            "table_exists" => table.table_exists(),
            "access_policy" => table.access_policy(),
            "set_access_policy" => table.set_access_policy([]),
            "properties" => service.properties(),
            "set_properties" => service.set_properties(properties),
            "stats" => service.stats(),
        }
        errors
    }};
    ($errors:ident, $option:ident($value:expr), $($name:literal => $action:expr,)+) => {
        $($errors.push(($name, $action.$option($value).await.unwrap_err()));)+
    };
}

#[tokio::test(start_paused = true)]
async fn retry_replaces_the_attempts_of_the_client_in_every_call() {
    let (subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    let stored = stored(&table).await;
    proxy.choose(|_| Reply::Refuse);
    for (policy, attempts) in [
        (RetryPolicy::none(), 1),
        (RetryPolicy::exponential().attempts(2), 2),
    ] {
        for (what, error) in each_error!(&table, &subject.service, &stored, retry(policy.clone())) {
            assert_eq!(error.kind(), ErrorKind::Transport, "{what}");
            assert_eq!(error.attempts(), attempts, "{what}");
        }
    }
    // The options end with the call.
    assert_eq!(table.get(key()).await.unwrap_err().attempts(), 7);
}

#[tokio::test(start_paused = true)]
async fn deadline_replaces_that_of_the_client_in_every_call() {
    let (subject, table, faults) = start().await;
    let stored = stored(&table).await;
    faults.on_any().inject(Fault::no_response());
    for (what, error) in each_error!(&table, &subject.service, &stored, deadline(SECOND)) {
        assert!(error.is_timeout(), "{what}: {error:?}");
        let is_in_time = (SECOND..SECOND * 2).contains(&error.elapsed());
        assert!(is_in_time, "{what}: {error:?}");
    }
    for (what, error) in each_error!(&table, &subject.service, &stored, deadline(Duration::ZERO)) {
        assert_eq!(error.kind(), ErrorKind::Input, "{what}: {error:?}");
    }
    // The deadline of a call counts whatever the order of the options is.
    let policy = || RetryPolicy::none().deadline(SECOND * 20);
    for get in [
        table.get(key()).deadline(SECOND).retry(policy()),
        table.get(key()).retry(policy()).deadline(SECOND),
    ] {
        let error = get.await.unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        assert!(error.elapsed() < SECOND * 2, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_page_has_the_deadline_and_the_attempts_of_the_call() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    for id in ["1", "2", "3"] {
        table.insert(&Employee::new(id, "Ada", 36)).await.unwrap();
    }
    let query = || table.query::<Employee>().partition("Sales").page_size(1);
    faults.on_any().inject(Fault::delay(SECOND * 2));
    let start = Instant::now();
    assert_eq!(query().deadline(SECOND * 3).count().await.unwrap(), 3);
    assert_eq!(start.elapsed(), SECOND * 6);
    let error = query().deadline(SECOND).count().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");

    faults.clear();
    let every_second = [Fault::reset(), Fault::delay(Duration::ZERO)];
    faults
        .on_any()
        .inject_each(every_second.into_iter().cycle());
    let policy = RetryPolicy::exponential().attempts(2);
    assert_eq!(query().retry(policy).count().await.unwrap(), 3);
    assert_eq!(query().count().await.unwrap_err().attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_rounds_of_modify_share_the_deadline_of_the_call() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    stored(&table).await;
    faults.on_any().inject(Fault::delay(SECOND * 2));
    let modify = || table.modify(key(), Employee::grow_older);
    let error = modify().deadline(SECOND * 3).await.unwrap_err();
    assert!(error.is_outcome_unknown(), "the write was sent: {error:?}");
    assert!(error.elapsed() < SECOND * 4, "{error:?}");
    let ada = modify().deadline(SECOND * 5).await.unwrap();
    // The write of the first call was carried out after its client had given up.
    assert_eq!(ada.age, 38);
}

#[tokio::test]
async fn markers_are_kept_by_the_deadline_of_the_client() {
    let (_subject, table, _) = start().await;
    let clean_up = table.clean_up_markers("Sales").older_than(SECOND * 90);
    let error = clean_up.deadline(SECOND).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
}

#[tokio::test]
async fn the_application_id_is_the_first_word_of_the_user_agent() {
    let (subject, _, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
    let builder = || {
        let builder = TableServiceClient::builder(subject.server().endpoint());
        let builder = builder.credential(subject.server().credential());
        builder.transport(proxy.clone())
    };
    let agent = || {
        let last = proxy.sent().pop().unwrap();
        last.headers["user-agent"].to_str().unwrap().to_owned()
    };
    let service = builder().build().unwrap();
    service.tables().collect().await.unwrap();
    let plain = agent();
    assert!(plain.starts_with("tablesdk/"), "{plain}");

    let service = builder().application_id("billing/2.1").build().unwrap();
    service.tables().collect().await.unwrap();
    assert_eq!(agent(), format!("billing/2.1 {plain}"));

    for id in ["", "a b", "ä", "a\r\nb", "(x)", "0123456789012345678901234"] {
        let error = builder().application_id(id).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{id:?}");
        assert!(error.to_string().contains("1 to 24 characters"), "{error}");
    }
    builder()
        .application_id("012345678901234567890123")
        .build()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_page_and_each_batch_of_a_bulk_run_has_the_options_of_the_call() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    let employee = |id: i32| Employee::new(&id.to_string(), "Ada", 36);
    let employees = || futures::stream::iter((0..3).map(employee));
    let once = || {
        faults.clear();
        for op in [Op::Batch, Op::QueryEntities] {
            faults.next(op, Fault::reset());
        }
    };
    once();
    let report = table.bulk().upsert_replace(employees()).await.unwrap();
    assert_eq!(report.progress().written, 0);
    once();
    let policy = || RetryPolicy::exponential().attempts(2);
    let bulk = table.bulk().upsert_replace(employees());
    assert_eq!(bulk.retry(policy()).await.unwrap().progress().written, 3);
    once();
    let sales = || table.query::<Employee>().partition("Sales");
    assert!(sales().delete_all().await.is_err());
    once();
    let report = sales().delete_all().retry(policy()).await.unwrap();
    assert_eq!(report.progress().written, 3);
}
