//! Owns the table of how memory was measured: the method, the range that it leaves, and further figures beside it.
//! Start reading at [`table`].

use record::{CgroupCounter, MemoryMethod, ServerUse};
use units::Bytes;

use crate::cells::CellView;
use crate::figures::{NONE, listed};
use crate::standing::median;
use crate::table::{Column, Depth, Row, Table};
use crate::wording::name_of;

/// How the memory of each contender was measured.
pub(crate) fn table(CellView { run, .. }: &CellView) -> Table {
    let uses = |contender: usize| -> Vec<ServerUse> {
        run.measured(contender).filter_map(|visit| visit.server).collect()
    };
    let contenders = 0..run.plan.contenders.len();
    let all: Vec<ServerUse> = contenders.clone().flat_map(uses).collect();
    let row = |contender: usize| {
        let uses = uses(contender);
        (!uses.is_empty())
            .then(|| std::iter::once(name_of(&run.plan.contenders, contender)).chain(cells(&uses)))
    };
    let is_doubtful = |one: &ServerUse| {
        let account = one.memory_account;
        account.method != MemoryMethod::PagesOnce || account.swapped.0 > 0 || account.unread > 0
    };
    // The table is shown only for doubtful figures; older files do not say how memory was measured.
    let is_shown = |one: &ServerUse| is_doubtful(one) && one.memory_account.readings > 0;
    Table {
        title: "How memory was measured".to_owned(),
        note: format!(
            "Memory of a visit is the highest of several readings of the server's process tree; figures \
             here are medians over visits, swapped and unread are the most of any. {}",
            methods(&all)
        ),
        columns: vec![
            Column::text("contender"),
            Column::text("method"),
            Column::figure("memory", ""),
            Column::figure("at most", ""),
            Column::figure("swapped out", ""),
            Column::figure("unread", "processes"),
            Column::figure("cgroup peak", ""),
        ],
        rows: contenders.filter_map(row).map(Row::of).collect(),
        depth: if all.iter().any(is_shown) { Depth::Answer } else { Depth::Detail },
    }
}

fn cells(uses: &[ServerUse]) -> [String; 6] {
    let middle = |values: &mut dyn Iterator<Item = Bytes>| {
        let middle = median(values.map(|bytes| bytes.0 as f64));
        middle.map_or_else(|| NONE.to_owned(), |bytes| Bytes(bytes as u64).to_string())
    };
    let accounts = || uses.iter().map(|one| one.memory_account);
    let mut methods: Vec<MemoryMethod> = accounts().map(|account| account.method).collect();
    methods.sort_unstable();
    methods.dedup();
    let methods: Vec<String> = methods.iter().map(ToString::to_string).collect();
    // Files that say nothing of the upper end have 0 there.
    let at_most = accounts().map(|account| account.at_most).filter(|bytes| bytes.0 > 0);
    let swapped = accounts().map(|account| account.swapped).max().unwrap_or_default();
    let unread = accounts().map(|account| account.unread).max().unwrap_or_default();
    [
        listed(&methods),
        middle(&mut uses.iter().map(|one| one.memory)),
        middle(&mut { at_most }),
        swapped.to_string(),
        unread.to_string(),
        middle(&mut accounts().filter_map(|account| Some(account.cgroup?.peak))),
    ]
}

/// Explains the methods that occur, and the cgroup's counter.
fn methods(uses: &[ServerUse]) -> String {
    let is_there = |method| uses.iter().any(|one| one.memory_account.method == method);
    let known = [
        (
            MemoryMethod::PagesOnce,
            "`each page once`: no process outside the tree changes the figure",
        ),
        (
            MemoryMethod::Bound,
            "`a lower bound`: which pages processes share since a fork is not known without \
             CAP_SYS_ADMIN, so memory is between this figure and `at most`",
        ),
        (
            MemoryMethod::Resident,
            "`resident memory of some processes`: their pages could not be read (CAP_SYS_PTRACE), so \
             shared pages count more than once",
        ),
        (
            MemoryMethod::Pss,
            "`PSS`: a page is divided over all processes of the machine that map it, so other programs \
             change the figure",
        ),
    ];
    let counter = uses.iter().find_map(|one| one.memory_account.cgroup).map(|cgroup| {
        let name = match cgroup.counter {
            CgroupCounter::MaxUsageInBytes => "memory.max_usage_in_bytes",
            CgroupCounter::Peak => "memory.peak",
        };
        format!("`cgroup peak` ({name}) also counts the page cache and kernel memory")
    });
    let known = known.into_iter().filter(|(method, _)| is_there(*method));
    known.map(|(_, said)| said.to_owned()).chain(counter).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use record::CgroupMemory;

    use super::*;
    use crate::{Detail, Options, cells, testdata};

    /// A run whose second contender has a range, swapped pages, an unread process and a cgroup.
    fn run() -> record::RunRecord {
        let mut run = testdata::run_with(3);
        for visit in &mut run.visits {
            let contender = visit.contender;
            let Some(server) = visit.server.as_mut() else { continue };
            let account = &mut server.memory_account;
            account.readings = 12;
            account.method = MemoryMethod::PagesOnce;
            account.at_most = server.memory;
            if contender == 1 {
                account.method = MemoryMethod::Bound;
                account.at_most = Bytes(99_000_000);
                (account.swapped, account.unread) = (Bytes(3_000_000), 2);
                let (counter, peak) = (CgroupCounter::Peak, Bytes(123_000_000));
                account.cgroup = Some(CgroupMemory { counter, peak });
            }
        }
        run
    }

    #[test]
    fn range_swap_unread_processes_and_cgroup_stand_beside_the_method() {
        let table = table(&cells::cells(&run())[0]);
        let texts: Vec<&str> = table.rows[1].cells().iter().map(|cell| &*cell.text).collect();
        assert_eq!(texts[1], "a lower bound");
        assert_eq!(texts[3..], ["99 MB", "3 MB", "2", "123 MB"]);
        assert!(table.note.contains("CAP_SYS_ADMIN") && table.note.contains("memory.peak"));
        assert_eq!(table.depth, Depth::Answer);
    }

    fn rendered(name: &str, run: &record::RunRecord, options: &Options) -> String {
        let output = crate::output(name).unwrap();
        String::from_utf8(output.run.as_ref().unwrap().bytes(run, options)).unwrap()
    }

    #[test]
    fn every_output_that_lays_out_tables_has_them_and_csv_has_a_column_each() {
        let short = Options { width: 200, detail: Detail::Short, ..Options::default() };
        for name in ["text", "markdown", "html"] {
            let text = rendered(name, &run(), &short);
            for part in ["How memory was measured", "a lower bound", "99 MB", "123 MB"] {
                assert!(text.contains(part), "{name} lacks {part}");
            }
        }
        let csv = rendered("csv", &run(), &short);
        let part = ",bound,99000000,3000000,2,123000000\r\n";
        assert!(csv.contains(part), "{csv}");
    }
}
