"""The figures of the patterns: what a request writes or reads, from the top to the bottom. One idea each.

A row is an entity: PartitionKey, RowKey, and what its properties say. A frame around rows is a partition, or a table; a dashed one is
an entity group transaction. A blue box is a call of the program.
"""

from drawing import Figure

WIDTH = 520
LEFT = 20
ROW = 34


class Story:
    """A figure that grows downwards."""

    def __init__(self, title, description, keys=112, rows=222, width=WIDTH):
        self.figure = Figure(0, title, description, width)
        self.widths = [keys, rows, width - 2 * LEFT - 2 * 12 - keys - rows]
        self.inside = width - 2 * LEFT
        self.y = 20

    def call(self, label, note):
        """A call of the program, whose arrow leads to what comes next."""
        self.box(label, note)
        self.figure.arrow(LEFT + 60, self.y, LEFT + 60, self.y + 28)
        self.y += 28

    def read(self, label, note):
        """A call of the program that reads what comes before."""
        self.figure.arrow(LEFT + 60, self.y + 28, LEFT + 60, self.y)
        self.y += 28
        self.box(label, note)
        self.y += 12

    def box(self, label, note):
        width = 22 + 8.5 * len(label.replace("`", ""))
        self.figure.rect(LEFT, self.y, width, ROW, "blue")
        self.figure.text(LEFT + width / 2, self.y + 22, label)
        self.figure.text(LEFT + width + 12, self.y + 22, note, "soft", "start")
        self.y += ROW

    def frame(self, title, rows, kind="frame", head=False):
        """Entities below each other: cells and the kind of each."""
        figure, top = self.figure, self.y
        height = 34 + (18 if head else 0) + len(rows) * (ROW + 6) + 6
        figure.rect(LEFT, top, self.inside, height, kind)
        figure.text(LEFT + 12, top + 23, title, "", "start")
        self.y = top + 34
        if head:
            x = LEFT + 12
            for width, name in zip(self.widths, ["PartitionKey", "RowKey", "properties"]):
                figure.text(x + 8, self.y + 11, name, "soft", "start")
                x += width
            self.y += 18
        for cells, color in rows:
            self.entity(cells, color)
        self.y = top + height

    def entity(self, cells, color):
        figure, x = self.figure, LEFT + 12
        figure.rect(x, self.y, sum(self.widths), ROW, color)
        for index, (cell, width) in enumerate(zip(cells, self.widths)):
            if index:
                figure.add(f'<path class="line" d="M{x} {self.y}v{ROW}"/>')
            figure.text(x + 8, self.y + 22, cell, "", "start")
            x += width
        self.y += ROW + 6

    def transaction(self, rows, title="one transaction: all or nothing", head=True):
        self.frame(title, rows, "frame dashed", head)

    def note(self, *lines):
        self.figure.lines(LEFT, self.y + 22, lines, "soft", "start")
        self.y += 12 + 20 * len(lines)

    def gap(self, height=14):
        self.y += height

    def end(self):
        self.figure.height = self.y + 14
        return self.figure


def index():
    story = Story(
        "An index in the partition",
        "The program inserts the employee jonesj. One transaction in the partition Sales writes the employee under empid_000223 and an entry "
        "under email_jonesj@contoso.com with the same properties. A get of the index reads the entry by one point query.",
        keys=104,
        rows=218,
    )
    story.call("`insert(&jones)`", "1 request")
    story.transaction(
        [
            (["`Sales`", "`empid_000223`", "the employee"], "green"),
            (["`Sales`", "`email_jonesj@contoso.com`", "an entry"], "yellow"),
        ]
    )
    story.read("`get(ByEmail::key(…))`", "1 request: a point query")
    return story.end()


def index_over_partitions():
    story = Story(
        "An index over all partitions",
        "The program inserts an employee. The client first writes the entry in the partition name_Jones, then the employee in the partition "
        "Sales, and then confirms the entry. A query of the partition name_Jones finds the entries of all departments, and follow reads the "
        "employee of each.",
    )
    story.call("`insert(&jones)`", "3 requests, in this order")
    story.frame("first the entry, and again at the end", [(["`name_Jones`", "`in_Sales_000223`", "an entry"], "yellow")], head=True)
    story.gap(8)
    story.frame("then the employee", [(["`Sales`", "`empid_000223`", "the employee"], "green")])
    story.note("A client that stops leaves an entry without an employee at most.")
    story.gap(4)
    story.frame("partition `name_Jones`: all departments", [
        (["`name_Jones`", "`in_Legal_000007`", "an entry"], "yellow"),
        (["`name_Jones`", "`in_Sales_000223`", "an entry"], "yellow"),
    ])
    story.read("`query::<ByName>().follow()`", "1 request, and 1 each")
    return story.end()


def unique():
    story = Story(
        "A unique value over partitions",
        "The program inserts the employee jonesj. The client first writes a ticket into the partition of the employee. It then reserves the key "
        "jonesj@contoso.com in the partition email_Sales by an entry that names the ticket. One transaction inserts the employee and deletes the "
        "ticket. Then the entry is confirmed. A client that finds the key reserved deletes the ticket, and so makes the transaction fail.",
        keys=104,
        rows=188,
    )
    story.call("`insert(&jones)`", "4 requests, in this order")
    story.frame("1 the ticket", [(["`empid_Sales`", "`~tablesdk.ticket.…`", "a ticket"], "box")], head=True)
    story.gap(8)
    story.frame("2 the key is reserved, 4 and confirmed", [(["`email_Sales`", "`jonesj@contoso.com`", "an entry"], "yellow")])
    story.gap(8)
    story.transaction(
        [
            (["`empid_Sales`", "`000223`", "the employee"], "green"),
            (["`empid_Sales`", "`~tablesdk.ticket.…`", "deleted"], "anti"),
        ],
        "3 one transaction: all or nothing",
        head=False,
    )
    story.note("Another client can take the key of a stopped client: it deletes", "the ticket, so that transaction 3 cannot be carried out.")
    return story.end()


def index_entities():
    story = Story(
        "Index entities",
        "The program adds an employee. One transaction inserts the employee 000152 and replaces the index entity Jones, whose property "
        "EmployeeIDs lists the row keys of all employees with that last name. A reader gets the list and then each employee.",
        keys=104,
        rows=90,
    )
    story.call("`transaction(…)`", "2 requests: reads the list, writes")
    story.transaction(
        [
            (["`Sales`", "`000152`", "the new employee"], "green"),
            (["`Sales`", "`Jones`", "EmployeeIDs `000152,000223`"], "yellow"),
        ]
    )
    story.read("`get`, `get_many`", "1 request, and 1 for each employee")
    return story.end()


def denormalization():
    story = Story(
        "Denormalization",
        "The program replaces the employee who manages Sales. One transaction writes the employee and the manager's email in the department. "
        "One get reads the department with the email of its manager.",
        keys=104,
        rows=122,
    )
    story.call("`replace(&mut manager)`", "1 request")
    story.transaction(
        [
            (["`Sales`", "`empid_000223`", "Email `jonesj@contoso.com`"], "green"),
            (["`Sales`", "`dept_`", "ManagerEmail `jonesj@…`"], "yellow"),
        ]
    )
    story.read("`get(Department::key(…))`", "1 request instead of 2")
    return story.end()


def compound_key():
    story = Story(
        "A compound key",
        "The partition Sales has the employee 000223 and the reviews 000223_2011 and 000223_2012 next to each other, and then the employee "
        "000224. One query of a range of row keys reads the employee and the reviews.",
        keys=104,
        rows=122,
    )
    story.frame(
        "partition `Sales`, in the order of row keys",
        [
            (["`Sales`", "`000223`", "the employee"], "green"),
            (["`Sales`", "`000223_2011`", "a review"], "yellow"),
            (["`Sales`", "`000223_2012`", "a review"], "yellow"),
            (["`Sales`", "`000224`", "the next employee"], "box"),
        ],
        head=True,
    )
    story.read("`rows(…)` of `000223`", "1 request: the first three")
    return story.end()


def log_tail():
    story = Story(
        "A log tail",
        "Row keys begin with the time, counted backwards from the end of the calendar. The newest claim has the smallest row key and is the "
        "first entity of the partition. A query of ten entities reads the ten newest claims, with one small request.",
        keys=104,
        rows=204,
    )
    story.call("`take(10)`", "1 request: the first ones are the newest")
    story.frame(
        "partition of an employee",
        [
            (["`000223`", "`2516896457999999999_07`", "claim of today"], "green"),
            (["`000223`", "`2516897321999999999_06`", "of yesterday"], "box"),
            (["`000223`", "`2516898185999999999_05`", "of the day before"], "box"),
        ],
        head=True,
    )
    story.note("The number is the time that is left until the end of the calendar.")
    return story.end()


def archive():
    story = Story(
        "The archive",
        "The program moves an employee. The client first inserts the employee into the table Archive, and then deletes it from the table "
        "Current, if it is still as it was read. A reader finds it in both for a moment, and never in neither.",
        keys=104,
        rows=150,
    )
    story.call("`move_to(&archive)`", "1 reads, 2 inserts, 3 deletes")
    story.frame("2 table `Archive`: inserted first", [(["`Sales`", "`empid_000456`", "the employee"], "green")], head=True)
    story.gap(8)
    story.frame("3 table `Current`: deleted, if it is as it was read", [(["`Sales`", "`empid_000456`", "the employee"], "anti")])
    story.note("In both for a moment, never in neither.", "After a stop, the same move goes on.")
    return story.end()


def high_volume_delete():
    figure = Figure(
        262,
        "High volume delete",
        "Each month has a table of its own. A login is inserted into the table of its month. The logins of a month are deleted with their "
        "table, by one request, however many they are.",
        WIDTH,
    )
    figure.box(20, 20, 136, 34, None, ["`insert(&login)`"], "blue")
    figure.box(264, 20, 236, 34, None, ["`drop_before(february)`"], "blue")
    for x, name, kind in [(20, "202403", "green"), (192, "202402", "box"), (364, "202401", "anti")]:
        figure.rect(x, 92, 136, 112, kind)
        figure.lines(x + 68, 116, [f"`Logins{name}`"])
        for row in range(3):
            figure.rect(x + 14, 130 + row * 22, 108, 16, "box", 3)
    figure.arrow(88, 54, 88, 92)
    figure.arrow(432, 54, 432, 92)
    figure.text(20, 230, "A table for each month: its deletion is 1 request,", "soft", "start")
    figure.text(20, 250, "however many logins it has.", "soft", "start")
    return figure


def data_series():
    figure = Figure(
        236,
        "A data series",
        "One entity has the messages of an employee in a day, with a property for each hour. A merge writes the property of one hour. A get "
        "reads all hours.",
        WIDTH,
    )
    figure.box(20, 20, 220, 34, None, ["merge of one hour"], "blue")
    figure.text(252, 42, "1 request", "soft", "start")
    figure.rect(20, 92, 480, 68, "frame")
    figure.text(232, 115, "one entity: `000223`, `20240315`", "", "start")
    for slot in range(24):
        figure.rect(32 + slot * 19, 126, 16, 22, "green" if slot == 9 else "box", 2)
    figure.arrow(211, 54, 211, 126)
    figure.arrow(80, 190, 80, 160)
    figure.box(20, 190, 136, 34, None, ["`get`"], "blue")
    figure.text(168, 212, "1 request: all hours", "soft", "start")
    return figure


def wide_entity():
    story = Story(
        "A wide entity",
        "A value with more properties than one entity takes is stored as several entities of a partition, which one transaction writes. A "
        "range of row keys reads all of them with one request, and the client joins them.",
        keys=104,
        rows=150,
    )
    story.call("`insert(&year)`", "365 days, one value")
    story.transaction(
        [
            (["`000223`", "`2024`", "the first 250 properties"], "green"),
            (["`000223`", "`2024!…!01`", "the others"], "yellow"),
        ]
    )
    story.read("`get(Year::key(…))`", "one value again")
    return story.end()


def large_value():
    figure = Figure(
        268,
        "A large value",
        "The program first puts the photo into an object store, and then inserts the employee, whose property Photo has the name, the length "
        "and the checksum of the object. So an entity that names an object names a complete one.",
        WIDTH,
    )
    figure.box(20, 20, 136, 34, None, ["`photos.put(…)`"], "blue")
    figure.box(364, 20, 136, 34, None, ["`insert(&ada)`"], "blue")
    figure.step(88, 73, "1")
    figure.step(432, 73, "2")
    figure.arrow(88, 84, 88, 104)
    figure.arrow(432, 84, 432, 104)
    figure.rect(20, 104, 170, 92, "frame")
    figure.text(32, 127, "object store", "", "start")
    figure.box(32, 142, 146, 40, None, ["photo, 3 MB"], "green")
    figure.rect(270, 104, 230, 92, "frame")
    figure.text(282, 127, "table", "", "start")
    figure.box(282, 142, 206, 40, None, ["Photo: its name, length"], "yellow")
    figure.arrow(282, 162, 178, 162)
    figure.lines(20, 222, ["The object first: what an entity names is complete. A value", "of less than 1 MiB can also be cut into several properties."], "soft", "start")
    return figure


def append():
    figure = Figure(
        330,
        "Keys that only grow",
        "If the partition key is the hour, all writes of a moment go to one partition, which is hot, while the others are idle. With a shard "
        "in front of the hour, the writes of a moment go to sixteen partitions, and a merged query reads them in order.",
        WIDTH,
    )
    figure.text(20, 34, "anti-pattern: one hot partition", "", "start")
    for index, hour in enumerate(["`08`", "`09`", "`10`"]):
        figure.box(20 + index * 66, 94, 58, 34, None, [hour], "anti" if index == 2 else "box")
    for x in [136, 181, 226]:
        figure.arrow(x, 46, 172 + (x - 172) / 6, 94)
    figure.text(20, 174, "instead: a shard in front of the hour", "", "start")
    for index in range(4):
        x = 20 + index * 90
        figure.arrow(x + 40, 186, x + 40, 218)
        figure.box(x, 218, 80, 34, None, [f"`0{index}_10`"], "green")
    figure.text(386, 240, "… `15_10`", "", "start")
    figure.arrow(80, 284, 80, 252)
    figure.box(20, 284, 136, 34, None, ["`merged()`"], "blue")
    figure.text(168, 306, "1 request for each partition", "soft", "start")
    return figure


def log_data():
    figure = Figure(
        226,
        "Log data",
        "Lines of a log that are read as a range of time belong into blobs whose names have the hour, and not into a table.",
        WIDTH,
    )
    figure.box(20, 20, 180, 34, None, ["lines of a log"], "blue")
    figure.arrow(200, 37, 262, 37)
    figure.box(262, 20, 238, 34, None, ["a table: an entity each"], "anti")
    figure.arrow(80, 54, 80, 92)
    figure.rect(20, 92, 480, 84, "frame")
    figure.text(32, 115, "blobs, one file for each part of an hour", "", "start")
    for index, name in enumerate(["`…/1800/000001.log`", "`…/1900/000001.log`"]):
        figure.box(32 + index * 234, 128, 222, 34, None, [name], "green")
    figure.text(20, 206, "A range of time is a range of names, and is read as files.", "soft", "start")
    return figure


def lease():
    story = Story(
        "A lease",
        "The first client acquires the lease, writes its entity with token 1, and writes it again to renew it, which changes the ETag. A second "
        "client sees the entity unchanged for the duration of the lease, and takes it over under that ETag with token 2. A write with the fence "
        "of the first client is then refused.",
        keys=104,
        rows=110,
    )
    story.call("`acquire()`, `renew()`", "client 1: each write is a new ETag")
    story.frame("the entity of the lease", [(["`2024-03`", "`payroll`", "client 1, token 1"], "green")], head=True)
    story.read("`acquire()`", "client 2: sees the same ETag for the duration")
    story.call("takes it over", "under that ETag")
    story.frame("the same entity", [(["`2024-03`", "`payroll`", "client 2, token 2"], "yellow")])
    story.note("A write of client 1 with its fence is refused from now on.")
    return story.end()


def sequence():
    figure = Figure(
        246,
        "A sequence",
        "One entity has the first number that no client has taken. Each client takes a block of a hundred numbers by a write under the ETag that "
        "it read, and gives the numbers of its block without a request.",
        WIDTH,
    )
    for x, client, block in [(20, "client 1", "1 to 100"), (282, "client 2", "101 to 200")]:
        figure.box(x, 20, 218, 56, client, [f"gives {block}"], "blue")
        figure.path([(x + 109, 76), (x + 109, 130)], both=True)
    figure.text(141, 108, "2 requests a block", "soft", "start")
    figure.rect(20, 130, 480, 60, "frame")
    figure.box(32, 142, 456, 36, None, ["one entity: the next number is 201"], "green")
    figure.lines(20, 216, ["A client that stops leaves a gap. No number is given twice."], "soft", "start")
    return figure


def counter():
    figure = Figure(
        310,
        "A counter",
        "The number is the sum of several entities, the shards. Each client adds to a shard of its own, and calls at the same time share one "
        "request. The value is read as the sum of all shards by one query.",
        WIDTH,
    )
    for index, amount in enumerate(["200", "250", "180"]):
        x = 20 + index * 168
        figure.box(x, 20, 144, 36, None, [f"client {index + 1}: `add`"], "blue")
        figure.arrow(x + 72, 56, x + 72, 130)
        figure.box(x + 12, 130, 120, 36, None, [f"`views~0{index}`: {amount}"], "green")
    figure.rect(20, 96, 480, 84, "frame")
    figure.text(32, 118, "shards", "", "start")
    figure.arrow(92, 212, 92, 180)
    figure.box(20, 212, 144, 36, None, ["`value()`"], "blue")
    figure.text(176, 235, "1 request: 630", "soft", "start")
    figure.lines(20, 276, ["Clients do not meet in one entity. Calls at the same time", "share a request."], "soft", "start")
    return figure


def expiry():
    story = Story(
        "Entities that expire",
        "Each session has the instant at which it expires. A query at half past ten returns the session that expires at eleven, and hides the "
        "one that expired at ten. A clean-up deletes the expired session later.",
        keys=104,
        rows=110,
    )
    story.call("a query at 10:30", "1 request: the first one alone")
    story.frame(
        "partition `ann`",
        [
            (["`ann`", "`desk`", "expires at 11:00"], "green"),
            (["`ann`", "`laptop`", "expired at 10:00: hidden"], "anti"),
        ],
        head=True,
    )
    story.read("`clean_up_expired()`", "later: deletes the second one")
    return story.end()


def pattern_map():
    figure = Figure(
        720,
        "A map of the patterns",
        "Intra-partition index, denormalization and compound key keep entities of one partition together by an entity group transaction. The "
        "inter-partition index and the archive write several partitions by eventually consistent transactions. Index entities use one or the "
        "other. A data series that becomes too large for one entity is a wide entity, and a value of more than 1 MiB is a large value. A log "
        "tail and the tables of a high volume delete follow the time; keys that only grow are the prepend and append anti-pattern, which shards "
        "avoid. Log data belongs into blobs.",
        WIDTH,
    )
    figure.text(20, 36, "Entities that belong together", "name", "start")
    figure.rect(20, 50, 232, 166, "frame")
    figure.text(32, 73, "in one partition", "soft", "start")
    for index, name in enumerate(["Intra-partition index", "Denormalization", "Compound key"]):
        figure.box(32, 84 + index * 42, 208, 36, None, [name], "blue")
    figure.rect(268, 50, 232, 166, "frame")
    figure.text(280, 73, "over partitions", "soft", "start")
    for index, name in enumerate(["Inter-partition index", "Archive"]):
        figure.box(280, 84 + index * 42, 208, 36, None, [name], "blue")
    figure.box(190, 244, 140, 36, None, ["Index entities"], "blue")
    figure.arrow(90, 216, 90, 320)
    figure.arrow(430, 216, 430, 320)
    figure.path([(220, 280), (220, 320)])
    figure.path([(300, 280), (300, 320)])
    figure.text(100, 306, "kept by", "soft", "start")
    figure.text(420, 306, "kept by", "soft", "end")
    figure.box(20, 320, 232, 56, "Entity group", ["transaction"], "green")
    figure.box(268, 320, 232, 56, "Eventually consistent", ["transactions"], "green")

    figure.text(20, 420, "Size", "name", "start")
    for x, name, width in [(20, "Data series", 120), (200, "Wide entity", 120), (380, "Large value", 120)]:
        figure.box(x, 450, width, 36, None, [name], "blue")
    figure.arrow(140, 468, 200, 468)
    figure.arrow(320, 468, 380, 468)
    figure.text(170, 444, "more than 252", "soft")
    figure.text(350, 444, "more than 1 MiB", "soft")

    figure.text(20, 532, "Time", "name", "start")
    figure.box(20, 546, 200, 36, None, ["Log tail"], "blue")
    figure.box(20, 588, 200, 36, None, ["High volume delete"], "blue")
    figure.box(320, 546, 180, 36, None, ["Prepend and append"], "anti")
    figure.box(320, 588, 180, 36, None, ["Log data"], "anti")
    figure.arrow(220, 564, 320, 564)
    figure.text(270, 555, "hot end", "soft")
    figure.arrow(390, 624, 390, 664)
    figure.box(320, 664, 180, 36, None, ["a blob, and no table"], "green")
    figure.box(20, 664, 200, 36, None, ["a shard in the key"], "green")
    figure.path([(500, 564), (510, 564), (510, 640), (120, 640), (120, 664)])
    figure.text(130, 656, "instead", "soft", "start")
    figure.text(400, 656, "instead", "soft", "start")
    return figure


# All of them are figures of guides.
FIGURES = {
    "pattern-map": pattern_map,
    "pattern-index": index,
    "pattern-index-over-partitions": index_over_partitions,
    "pattern-unique": unique,
    "pattern-index-entities": index_entities,
    "pattern-denormalization": denormalization,
    "pattern-compound-key": compound_key,
    "pattern-log-tail": log_tail,
    "pattern-archive": archive,
    "pattern-high-volume-delete": high_volume_delete,
    "pattern-data-series": data_series,
    "pattern-wide-entity": wide_entity,
    "pattern-large-value": large_value,
    "pattern-append": append,
    "pattern-log-data": log_data,
    "pattern-expiry": expiry,
    "pattern-lease": lease,
    "pattern-sequence": sequence,
    "pattern-counter": counter,
}
