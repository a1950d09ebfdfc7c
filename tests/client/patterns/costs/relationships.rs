//! Modelling relationships.

use std::collections::BTreeSet;

use tablesdk::key::RowRange;
use tablesdk::{DynamicEntity, ETag, TableEntity};

use super::Costs;

#[derive(Clone, TableEntity)]
#[table(entity_type = "Department", rename_all = "PascalCase")]
#[table(partition_key = "{name}", row_key = "dept")]
struct Department {
    name: String,
    title: String,
    headcount: i32,
}

#[derive(Clone, TableEntity)]
#[table(entity_type = "Employee", rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}_")]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    email: String,
}

#[derive(Clone, TableEntity)]
#[table(entity_type = "Salary", rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}_{detail}")]
struct Salary {
    department: String,
    id: u32,
    detail: String,
    cents: i64,
}

#[derive(Clone, TableEntity)]
#[table(entity_type = "Contractor", rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "contractor_{id:06}")]
struct Contractor {
    department: String,
    id: u32,
    last_name: String,
    daily_rate: f64,
}

#[derive(TableEntity)]
enum Company {
    Department(Department),
    Employee(Employee),
    Salary(Salary),
    Contractor(Contractor),
}

fn department(name: &str) -> Department {
    Department {
        name: name.into(),
        title: format!("The department {name}"),
        headcount: 100,
    }
}

fn employee(department: &str, id: u32) -> Employee {
    Employee {
        department: department.into(),
        id,
        last_name: "Jones".into(),
        email: format!("{id}@contoso.com"),
    }
}

fn salary(id: u32) -> Salary {
    Salary {
        department: "Sales".into(),
        id,
        detail: "salary".into(),
        cents: 500_000,
    }
}

fn contractor(id: u32) -> Contractor {
    Contractor {
        department: "Sales".into(),
        id,
        last_name: "Smith".into(),
        daily_rate: 900.0,
    }
}

pub(super) fn run(costs: &mut Costs) {
    one_to_many(costs);
    one_to_one(costs);
    join(costs);
    inheritance(costs);
}

fn one_to_many(costs: &mut Costs) {
    let employees = || (0..100).map(|id| employee("Sales", id));
    let together = costs.table_with("Together", employees());
    let mut sales = costs.run(together.insert(&department("Sales"))).unwrap();
    let many = costs.table_with("Many", employees());
    let one = costs.table_with("One", [department("Sales")]);

    let section = "One-to-many relationships";
    costs.task(section, "a department and its 100 employees");
    let all = together.query::<Company>().partition("Sales");
    costs.read("in one partition: a query of an enum", 101, all.collect());
    let read = async {
        let department = one.get(Department::key("Sales")).await.unwrap();
        let employees = many.query::<Employee>().partition("Sales");
        assert!(department.is_some() && employees.collect().await.unwrap().len() == 100);
    };
    costs.way("naive: a table for each", read);

    costs.task(section, "a new employee, and the headcount");
    sales.headcount += 1;
    let new = employee("Sales", 100);
    let batch = together.batch("Sales").insert(&new).replace(&mut sales);
    costs.way("in one partition: `batch`", batch).unwrap();
    let single = async {
        many.insert(&new).await.unwrap();
        let headcount = DynamicEntity::new("Sales", "dept").with("Headcount", 101);
        one.merge_if(&headcount, ETag::ANY).await.unwrap();
    };
    costs.way("naive: two writes, not together", single);
}

fn one_to_one(costs: &mut Costs) {
    let together = costs.table("Personnel");
    let (people, salaries) = (costs.table("People"), costs.table("Salaries"));
    let task = "insert an employee and the salary, and read both";
    costs.task("One-to-one relationships", task);
    let both = async {
        let batch = together.batch("Sales").insert(&employee("Sales", 1));
        batch.insert(&salary(1)).await.unwrap();
        let range = RowRange::from(Salary::rows().id(1)).of();
        let read = together.query::<Company>().partition("Sales").rows(range);
        read.collect().await
    };
    costs.read("in one partition: `batch`, and a row range", 2, both);
    let both = async {
        people.insert(&employee("Sales", 1)).await.unwrap();
        salaries.insert(&salary(1)).await.unwrap();
        let employee = people.get(Employee::key("Sales", 1)).await.unwrap();
        let salary = salaries.get(Salary::key("Sales", 1, "salary")).await;
        assert!(employee.is_some() && salary.unwrap().is_some());
    };
    costs.way("naive: a table for each", both);
}

fn join(costs: &mut Costs) {
    let names = ["Finance", "IT", "Legal", "Marketing", "Sales"];
    let table = costs.table_with("Departments", names.map(department));
    let found: Vec<Employee> = (0..100)
        .map(|id| employee(names[id as usize % names.len()], id))
        .collect();
    let task = "the departments of 100 found employees, who are in 5 departments";
    costs.task("Join in the client", task);
    let distinct: BTreeSet<&str> = found.iter().map(|e| e.department.as_str()).collect();
    let distinct = table.get_many(distinct.into_iter().map(Department::key));
    costs.read("`get_many` of distinct keys", 5, distinct);
    let each = async {
        for employee in &found {
            let key = Department::key(employee.department.as_str());
            assert!(table.get(key).await.unwrap().is_some());
        }
    };
    costs.way("naive: `get` for each employee", each);
}

fn inheritance(costs: &mut Costs) {
    let task = "50 employees and 50 contractors of a department";
    costs.task("Inheritance relationships", task);
    let employees = || (0..50).map(|id| employee("Sales", id));
    let contractors = || (0..50).map(contractor);
    let table = costs.table_with("Staff", employees());
    costs.insert(&table, contractors());
    let of_employees = costs.table_with("OnlyEmployees", employees());
    let of_contractors = costs.table_with("OnlyContractors", contractors());
    let staff = table.query::<Company>().partition("Sales");
    costs.read("a query of an enum", 100, staff.collect());
    let each = async {
        let employees = of_employees.query::<Employee>().partition("Sales");
        let contractors = of_contractors.query::<Contractor>().partition("Sales");
        let (employees, contractors) = (employees.collect().await, contractors.collect().await);
        assert_eq!(employees.unwrap().len() + contractors.unwrap().len(), 100);
    };
    costs.way("naive: a table for each type", each);
}
