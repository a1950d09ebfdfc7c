//! A program that reaches its table through a trait of its own: a fake of the trait behaves as the service does.

use std::collections::BTreeMap;
use std::sync::Mutex;

use http::StatusCode;
use tablesdk::action::CurrentState;
use tablesdk::query::{Page, PageToken};
use tablesdk::{ETag, Error, ErrorCode, ErrorKind, Stored, TableClient, Timestamp};

use super::*;

/// What the program needs of its table.
trait Employees {
    async fn get(&self, id: &str) -> Result<Option<Stored<Employee>>, Error>;
    async fn insert(&self, employee: &Employee) -> Result<Stored<Employee>, Error>;
    async fn replace(&self, employee: &mut Stored<Employee>) -> Result<(), Error>;
    async fn page(&self, token: Option<PageToken>) -> Result<Page<Stored<Employee>>, Error>;
}

impl Employees for TableClient {
    async fn get(&self, id: &str) -> Result<Option<Stored<Employee>>, Error> {
        self.get(Employee::key("Sales", id)).await
    }

    async fn insert(&self, employee: &Employee) -> Result<Stored<Employee>, Error> {
        self.insert(employee).await
    }

    async fn replace(&self, employee: &mut Stored<Employee>) -> Result<(), Error> {
        self.replace(employee).await.map(drop)
    }

    async fn page(&self, token: Option<PageToken>) -> Result<Page<Stored<Employee>>, Error> {
        let query = self.query::<Employee>().partition("Sales");
        query.page_size(2).page(token).await
    }
}

/// A table in a map. The next call fails with the failure, if there is one.
#[derive(Default)]
struct Fake {
    employees: Mutex<BTreeMap<String, (i64, Employee)>>,
    failure: Mutex<Option<Error>>,
}

impl Fake {
    fn failing(error: Error) -> Self {
        Self {
            failure: Mutex::new(Some(error)),
            ..Self::default()
        }
    }

    fn fail(&self) -> Result<(), Error> {
        self.failure.lock().unwrap().take().map_or(Ok(()), Err)
    }
}

fn stored(version: i64, employee: &Employee) -> Stored<Employee> {
    let version = Timestamp::from_unix_ticks(version).unwrap();
    Stored::from_parts(employee.clone(), ETag::from_timestamp(version)).unwrap()
}

impl Employees for Fake {
    async fn get(&self, id: &str) -> Result<Option<Stored<Employee>>, Error> {
        self.fail()?;
        let employees = self.employees.lock().unwrap();
        let found = employees.get(id);
        Ok(found.map(|(version, employee)| stored(*version, employee)))
    }

    async fn insert(&self, employee: &Employee) -> Result<Stored<Employee>, Error> {
        self.fail()?;
        let mut employees = self.employees.lock().unwrap();
        if employees.contains_key(&employee.id) {
            return Err(Error::service(ErrorCode::EntityAlreadyExists));
        }
        employees.insert(employee.id.clone(), (1, employee.clone()));
        Ok(stored(1, employee))
    }

    async fn replace(&self, employee: &mut Stored<Employee>) -> Result<(), Error> {
        self.fail()?;
        let mut employees = self.employees.lock().unwrap();
        let Some((version, known)) = employees.get_mut(&employee.id) else {
            return Err(Error::service(ErrorCode::ResourceNotFound));
        };
        if stored(*version, known).etag() != employee.etag() {
            return Err(Error::service(ErrorCode::UpdateConditionNotSatisfied));
        }
        *version += 1;
        *known = Employee::clone(employee);
        *employee = stored(*version, known);
        Ok(())
    }

    async fn page(&self, token: Option<PageToken>) -> Result<Page<Stored<Employee>>, Error> {
        self.fail()?;
        let employees = self.employees.lock().unwrap();
        let all = employees.values();
        let mut all = all.map(|(version, employee)| stored(*version, employee));
        let first = match token {
            None => all.next(),
            Some(token) => all.find(|employee| PageToken::fake(employee.key()) == token),
        };
        let items = first.into_iter().chain(all.next()).collect();
        let next = all.next();
        Ok(Page::new(
            items,
            next.map(|employee| PageToken::fake(employee.key())),
        ))
    }
}

/// The program under test: what it says of a change of a name.
async fn rename(employees: &impl Employees, id: &str, name: &str) -> Result<&'static str, Error> {
    let Some(mut employee) = employees.get(id).await? else {
        return Ok("unknown");
    };
    name.clone_into(&mut employee.name);
    match employees.replace(&mut employee).await {
        Ok(()) => Ok("renamed"),
        Err(error) if error.is_precondition_failed() => Ok("changed by another client"),
        Err(error) if error.is_outcome_unknown() => Ok("perhaps renamed"),
        Err(error) => Err(error),
    }
}

/// The program under test: all names, page by page, with tokens that went through a URL.
async fn names(employees: &impl Employees) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    let mut token = None;
    loop {
        let page = employees.page(token).await?;
        names.extend(page.items.iter().map(|employee| employee.name.clone()));
        let Some(next) = page.next else {
            return Ok(names);
        };
        token = Some(next.to_string().parse()?);
    }
}

/// What the program does with its table.
async fn assert_works(employees: &impl Employees) {
    for (id, name) in [("1", "Ada"), ("2", "Grace"), ("3", "Alan")] {
        let employee = Employee::new(id, name, 36);
        assert_eq!(*employees.insert(&employee).await.unwrap(), employee);
    }
    let error = employees.insert(&Employee::ada()).await.unwrap_err();
    assert!(error.is_conflict());
    assert_eq!(names(employees).await.unwrap(), ["Ada", "Grace", "Alan"]);

    assert_eq!(rename(employees, "4", "Alonzo").await.unwrap(), "unknown");
    assert_eq!(rename(employees, "1", "Lovelace").await.unwrap(), "renamed");
    let mut mine = employees.get("1").await.unwrap().unwrap();
    let mut theirs = mine.clone();
    employees.replace(&mut theirs).await.unwrap();
    assert_ne!(mine.etag(), theirs.etag());
    employees.replace(&mut theirs).await.unwrap();
    let error = employees.replace(&mut mine).await.unwrap_err();
    assert!(error.is_precondition_failed());
}

on_both_transports! {
async fn a_fake_behaves_as_the_table_does(subject: Subject) {
    assert_works(&subject.table().await).await;
    assert_works(&Fake::default()).await;
}
}

#[tokio::test]
async fn a_fake_fails_as_the_service_does() {
    let busy = Fake::failing(Error::service(ErrorCode::ServerBusy));
    let error = rename(&busy, "1", "Ada").await.unwrap_err();
    assert!(error.is_throttled());
    assert_eq!(error.kind(), ErrorKind::Service);
    assert_eq!(error.status(), Some(StatusCode::SERVICE_UNAVAILABLE));
    assert!(error.to_string().contains(ErrorCode::ServerBusy.message()));

    let silent = Fake::failing(Error::no_response());
    let error = rename(&silent, "1", "Ada").await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Transport, None));

    let lossy = Fake::default();
    lossy.insert(&Employee::ada()).await.unwrap();
    let mut ada = lossy.get("1").await.unwrap().unwrap();
    *lossy.failure.lock().unwrap() = Some(Error::outcome_unknown(CurrentState::Unread));
    let error = lossy.replace(&mut ada).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(matches!(error.current(), Some(CurrentState::Unread)));
    assert!(error.code().is_none() && !error.is_conflict());
}

#[tokio::test]
async fn a_service_error_has_the_predicates_of_its_code() {
    let of = |code| Error::service(code);
    assert!(of(ErrorCode::ResourceNotFound).is_not_found());
    assert!(of(ErrorCode::TableNotFound).is_table_not_found());
    assert!(of(ErrorCode::EntityAlreadyExists).is_conflict());
    assert!(of(ErrorCode::UpdateConditionNotSatisfied).is_precondition_failed());
    assert!(of(ErrorCode::AuthenticationFailed).is_denied());
    assert!(of(ErrorCode::TooManyRequests).is_throttled());

    // The message of a real one, without its place.
    let subject = harness::Subject::in_process();
    let missing = subject.service.table("Missing");
    let error = missing.insert(&Employee::ada()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&of(ErrorCode::TableNotFound).to_string())
    );
}

#[tokio::test]
async fn a_table_rejects_the_token_of_a_fake() {
    let subject = harness::Subject::in_process();
    let table = subject.table().await;
    let ada = table.insert(&Employee::ada()).await.unwrap();
    let token = PageToken::fake(ada.key());
    let error = Employees::page(&table, Some(token)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
}
