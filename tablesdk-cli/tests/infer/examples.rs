//! Tables as the examples of the repository fill them, and as other programs do.

use tablesdk::chunked::Chunked;
use tablesdk::outbox::{Message, Step};
use tablesdk::{DynamicEntity, TableEntity, Timestamp};

use crate::generated::{
    archive, claims, company, departments, employees, files, logins, messages, orders, outbox,
    readings, remarks, reviews, sessions, titles,
};
use crate::{reads_back, table};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[tokio::test]
async fn employees_with_indexes() {
    #[derive(Clone, Debug, TableEntity)]
    #[table(
        rename_all = "PascalCase",
        partition_key = "{department}",
        row_key = "empid_{id:06}"
    )]
    #[table(index(ByEmail, row_key = "email_{email}", unique))]
    #[table(index(
        InCompany,
        partition_key = "name_{last_name}",
        row_key = "in_{department}_{id:06}"
    ))]
    struct Employee {
        department: String,
        id: u32,
        last_name: String,
        email: Option<String>,
    }
    let (_server, table) = table("Employees").await;
    for (department, id, last_name, email) in [
        ("Sales", 223, "Jones", Some("jonesj@contoso.com")),
        ("Sales", 224, "Jones", None),
        ("Legal", 330, "Smith", Some("smitha@contoso.com")),
    ] {
        let employee = Employee {
            department: department.to_owned(),
            id,
            last_name: last_name.to_owned(),
            email: email.map(str::to_owned),
        };
        table.insert(&employee).await.unwrap();
    }
    let left_out = reads_back::<employees::Employee>(&table, "employees").await;
    assert_eq!((left_out.index_entries, left_out.reserved), (5, 0));
}

#[tokio::test]
async fn departments_with_employees_and_salaries() {
    #[derive(TableEntity)]
    #[table(entity_type = "Department", partition_key = "{name}", row_key = "dept")]
    struct Department {
        name: String,
        floor: i32,
    }
    #[derive(TableEntity)]
    #[table(
        entity_type = "Employee",
        partition_key = "{department}",
        row_key = "empid_{id:06}"
    )]
    struct Employee {
        department: String,
        id: u32,
        name: String,
    }
    #[derive(TableEntity)]
    #[table(
        entity_type = "Salary",
        partition_key = "{department}",
        row_key = "salary_{id:06}"
    )]
    struct Salary {
        department: String,
        id: u32,
        dollars: i64,
    }
    let (_server, table) = table("Departments").await;
    for (department, floor) in [("Sales", 2), ("Legal", 3), ("IT", 0)] {
        let name = department.to_owned();
        table.insert(&Department { name, floor }).await.unwrap();
        for id in 1..=4 {
            let department = department.to_owned();
            let name = format!("employee {id}");
            table
                .insert(&Employee {
                    department,
                    id,
                    name,
                })
                .await
                .unwrap();
        }
        let department = department.to_owned();
        table
            .insert(&Salary {
                department,
                id: 1,
                dollars: 5_000,
            })
            .await
            .unwrap();
    }
    reads_back::<departments::DepartmentRow>(&table, "departments").await;
}

#[tokio::test]
async fn a_company_of_several_types_and_versions() {
    let (_server, table) = table("Company").await;
    for (row, entity_type) in [
        ("!", "Department"),
        ("000001", "Employee"),
        ("000223", "Employee.v2"),
        ("000224", "Employee.v2"),
        ("f00001", "Freelancer"),
        ("z00001", "Desk"),
        ("z00002", ""),
    ] {
        let row = DynamicEntity::new("Sales", row);
        let row = match entity_type {
            "" => row,
            _ => row.with("EntityType", entity_type),
        };
        let row = match entity_type {
            "Department" => row.with("Headcount", 2).with("Budget", 250_000.0),
            "Employee" => row.with("Name", "Ada Lovelace").with("Salary", 65_000.0),
            "Employee.v2" => row.with("FirstName", "Grace").with("LastName", "Hopper"),
            "Freelancer" => row.with("Name", "Alan Turing").with("DailyRate", 900.0),
            _ => row,
        };
        table.insert(&row).await.unwrap();
    }
    reads_back::<company::CompanyRow>(&table, "company").await;
}

#[tokio::test]
async fn orders_whose_row_keys_tell_the_kinds_apart() {
    let (_server, table) = table("Orders").await;
    for order in ["o-17", "o-18"] {
        let head = DynamicEntity::new(order, "head").with("customer", "Contoso");
        table.insert(&head.with("isPaid", true)).await.unwrap();
        for line in 1..=3 {
            let item = DynamicEntity::new(order, format!("item_{line:04}"));
            table
                .insert(&item.with("unitCents", 1_995_i64))
                .await
                .unwrap();
        }
    }
    reads_back::<orders::OrderRow>(&table, "orders").await;
}

#[tokio::test]
async fn reviews_beside_their_employees() {
    #[derive(TableEntity)]
    #[table(
        entity_type = "Employee",
        rename_all = "PascalCase",
        partition_key = "{department}",
        row_key = "{id:06}_"
    )]
    struct Employee {
        department: String,
        id: u32,
        name: String,
    }
    #[derive(TableEntity)]
    #[table(
        entity_type = "Review",
        rename_all = "PascalCase",
        partition_key = "{department}",
        row_key = "{employee:06}_{year:04}"
    )]
    struct Review {
        department: String,
        employee: u32,
        year: u16,
        manager_rating: i32,
    }
    let (_server, table) = table("Reviews").await;
    for id in [223, 224] {
        let department = || "Sales".to_owned();
        let employee = Employee {
            department: department(),
            id,
            name: "Ada".to_owned(),
        };
        table.insert(&employee).await.unwrap();
        for year in 2021..2024 {
            let review = Review {
                department: department(),
                employee: id,
                year,
                manager_rating: 4,
            };
            table.insert(&review).await.unwrap();
        }
    }
    reads_back::<reviews::ReviewRow>(&table, "reviews").await;
}

#[tokio::test]
async fn claims_with_the_newest_first() {
    #[derive(TableEntity)]
    #[table(
        rename_all = "PascalCase",
        partition_key = "{employee}",
        row_key = "{claimed:desc}_{number:04}"
    )]
    struct ExpenseClaim {
        employee: String,
        claimed: Timestamp,
        number: u32,
        amount: f64,
    }
    let (_server, table) = table("Claims").await;
    for day in 10..20 {
        let claim = ExpenseClaim {
            employee: "jonesj".to_owned(),
            claimed: at(&format!("2024-03-{day}T09:00:00Z")),
            number: 1,
            amount: 12.5,
        };
        table.insert(&claim).await.unwrap();
    }
    reads_back::<claims::Claim>(&table, "claims").await;
}

#[tokio::test]
async fn logins_of_a_day() {
    #[derive(TableEntity)]
    #[table(
        rename_all = "PascalCase",
        partition_key = "{user}",
        row_key = "{at}_{session:04}"
    )]
    struct Login {
        user: String,
        at: Timestamp,
        session: u32,
        succeeded: bool,
    }
    let (_server, table) = table("Logins20240311").await;
    for (number, user) in (1..).zip(["ann", "bob", "eve"]) {
        let login = Login {
            user: user.to_owned(),
            at: at("2024-03-11T10:20:30.1234567Z"),
            session: number,
            succeeded: number > 1,
        };
        table.insert(&login).await.unwrap();
    }
    reads_back::<logins::Login>(&table, "logins").await;
}

#[tokio::test]
async fn readings_in_shards() {
    let (_server, table) = table("Readings").await;
    for second in 0..30 {
        let sensor = second % 3;
        let reading = DynamicEntity::new(
            format!("{sensor:02}_2024-03-15T10"),
            format!("00_{second:02}_sensor-{sensor:02}"),
        );
        let reading = reading.with("celsius", 18.5 + f64::from(sensor));
        table.insert(&reading).await.unwrap();
    }
    reads_back::<readings::Reading>(&table, "readings").await;
}

#[tokio::test]
async fn sessions_that_expire() {
    #[derive(Clone, TableEntity)]
    #[table(
        rename_all = "PascalCase",
        partition_key = "{user}",
        row_key = "session_{id:06}"
    )]
    struct Session {
        user: String,
        id: u32,
        device: String,
        #[table(expires(bucket = "1h"))]
        until: Option<Timestamp>,
    }
    let (_server, table) = table("Sessions").await;
    for (id, until) in [(1, None), (2, Some("2124-03-15T10:20:30Z")), (3, None)] {
        let session = Session {
            user: "ann".to_owned(),
            id,
            device: "phone".to_owned(),
            until: until.map(at),
        };
        table.insert(&session).await.unwrap();
    }
    let left_out = reads_back::<sessions::Session>(&table, "sessions").await;
    assert_eq!(left_out.reserved, 1, "the entry of the bucket");
}

#[tokio::test]
async fn an_archive_of_employees() {
    let (_server, table) = table("Archive").await;
    for id in 1..=12 {
        let employee = DynamicEntity::new("Sales", format!("empid_{id:06}"));
        let left = (id % 2 == 0).then_some(2000 + id);
        let employee = employee
            .with("Name", format!("employee {id}"))
            .with("Left", left);
        table.insert(&employee).await.unwrap();
    }
    reads_back::<archive::Archive>(&table, "archive").await;
}

#[tokio::test]
async fn messages_of_the_hours_of_a_day() {
    let (_server, table) = table("Messages").await;
    for day in 10..20 {
        let mut messages = DynamicEntity::new("ann", format!("2024-03-{day}"));
        for hour in 8..day {
            messages.properties_mut().set(format!("H{hour:02}"), hour);
        }
        table.insert(&messages).await.unwrap();
    }
    reads_back::<messages::Message>(&table, "messages").await;
}

#[tokio::test]
async fn departments_with_an_outbox() {
    #[derive(Debug, serde::Serialize, serde::Deserialize)]
    struct Renamed {
        title: String,
    }
    impl Message for Renamed {
        const NAME: &'static str = "renamed";
    }
    let (_server, table) = table("Departments").await;
    for id in ["sales", "legal", "it"] {
        let department = DynamicEntity::new(id, "department").with("Title", id);
        let title = id.to_owned();
        let message = Step::message(&Renamed { title });
        table
            .batch(id)
            .insert(&department)
            .step(message)
            .leave_steps()
            .await
            .unwrap();
    }
    let left_out = reads_back::<outbox::Department>(&table, "outbox").await;
    assert!(left_out.reserved >= 6, "{left_out:?}");
}

#[tokio::test]
async fn titles_in_one_partition() {
    let (_server, table) = table("Titles").await;
    for id in ["sales", "legal", "it"] {
        let title = DynamicEntity::new("titles", id).with("Title", format!("The {id}"));
        table.insert(&title).await.unwrap();
    }
    reads_back::<titles::Title>(&table, "titles").await;
}

#[tokio::test]
async fn reviews_with_remarks_in_chunks() {
    #[derive(TableEntity)]
    #[table(
        rename_all = "PascalCase",
        partition_key = "{employee}",
        row_key = "{year:04}"
    )]
    struct Review {
        employee: String,
        year: u16,
        #[table(flatten, prefix = "Remarks")]
        remarks: Chunked<String>,
    }
    let (_server, table) = table("Remarks").await;
    for year in 2021..2024 {
        let employee = "ann".to_owned();
        let remarks = Chunked("She is punctual. ".repeat(2_500));
        let review = Review {
            employee,
            year,
            remarks,
        };
        table.insert(&review).await.unwrap();
    }
    reads_back::<remarks::Remark>(&table, "remarks").await;
}

#[tokio::test]
async fn files_by_an_escaped_path_and_a_guid() {
    let (_server, table) = table("Files").await;
    for (number, path) in (0..).zip(["docs=2Fread_me.md", "src=2Flib.rs", "LICENSE", "a=3Db"]) {
        let guid = format!("0e4a1b62-90e3-4c1e-8f6f-2b9a1f6c7d1{number}");
        let file = DynamicEntity::new(format!("host:{path}"), guid);
        let file = file.with("Size", 4_096_i64).with("Hash", vec![1_u8, 2]);
        table.insert(&file).await.unwrap();
    }
    reads_back::<files::File>(&table, "files").await;
}
