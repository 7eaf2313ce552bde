//! Books on a disk whose writes fail: a virtual file system of SQLite that passes all calls on to that of the operating
//! system, and fails the writes, syncs, truncations and deletions of a thread that the test names.

use super::awari::{DROP_OUT, EndsAt, engine};
use crate::{AssessmentLimits, BookBuilder, BookError, BookFile, BookSettings, BookSides, BuildError};
use disk::RealDisk;
use game::{Board, Rules};
use rusqlite::ffi;
use search::SearchStop;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};

/// Which operations of this thread fail.
#[derive(Clone, Copy, Debug)]
struct WriteFault {
    /// The number of the first one, from 1; 0 for none.
    first: u64,
    /// Whether all later ones fail too.
    lasts: bool,
    /// The result code.
    code: c_int,
}

const NO_FAULT: WriteFault = WriteFault { first: 0, lasts: false, code: ffi::SQLITE_OK };

thread_local! {
    static FAULT: Cell<WriteFault> = const { Cell::new(NO_FAULT) };
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts an operation, and returns the code with which it fails.
fn failure() -> Option<c_int> {
    let number = OPERATIONS.get() + 1;
    OPERATIONS.set(number);
    let WriteFault { first, lasts, code } = FAULT.get();
    (first > 0 && (number == first || lasts && number > first)).then_some(code)
}

/// Begins to count operations, of which some fail.
fn inject(fault: WriteFault) {
    FAULT.set(fault);
    OPERATIONS.set(0);
}

/// The methods of a file, and those that they pass calls on to. SQLite sees the first field.
#[repr(C)]
struct FailingMethods {
    methods: ffi::sqlite3_io_methods,
    real: *const ffi::sqlite3_io_methods,
}

/// Returns the methods that calls to a file are passed on to.
///
/// # Safety
/// The methods of the file are the first field of a [`FailingMethods`].
unsafe fn real(file: *mut ffi::sqlite3_file) -> &'static ffi::sqlite3_io_methods {
    // SAFETY: as the caller promises; the tables of methods are never freed.
    unsafe { &*(*(*file).pMethods.cast::<FailingMethods>()).real }
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, data: *const c_void, bytes: c_int, at: i64) -> c_int {
    let failure = failure();
    // A write that fails may have written a part.
    let written = if failure.is_some() { bytes / 2 } else { bytes };
    // SAFETY: SQLite passes `bytes` bytes, and a file that `open` prepared.
    let code = unsafe { real(file).xWrite.unwrap()(file, data, written, at) };
    failure.unwrap_or(code)
}

/// A sync that does not fail does nothing: no test loses what the system has, and waiting for a drive takes long.
unsafe extern "C" fn sync(_: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    failure().unwrap_or(ffi::SQLITE_OK)
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, bytes: i64) -> c_int {
    // SAFETY: a file that `open` prepared.
    failure().unwrap_or_else(|| unsafe { real(file).xTruncate.unwrap()(file, bytes) })
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    failure().unwrap_or_else(|| {
        // SAFETY: `register` put the file system of the operating system there.
        let system = unsafe { (*vfs).pAppData.cast::<ffi::sqlite3_vfs>() };
        // SAFETY: SQLite passes the name of a file.
        unsafe { (*system).xDelete.unwrap()(system, name, sync) }
    })
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    found: *mut c_int,
) -> c_int {
    // SAFETY: `register` put the file system of the operating system there.
    let system = unsafe { (*vfs).pAppData.cast::<ffi::sqlite3_vfs>() };
    // SAFETY: SQLite passes a file of the size that this file system has from that of the system.
    let code = unsafe { (*system).xOpen.unwrap()(system, name, file, flags, found) };
    // SAFETY: the system has set the methods, or null.
    let methods = unsafe { (*file).pMethods };
    if code == ffi::SQLITE_OK && !methods.is_null() {
        // SAFETY: the system's tables of methods are never freed. The file has the layout of the system, which all
        // methods but four see.
        unsafe { (*file).pMethods = failing(methods) };
    }
    code
}

/// Returns the failing methods for those of the system, one table for each.
///
/// # Safety
/// `real` is a table that is never freed.
unsafe fn failing(real: *const ffi::sqlite3_io_methods) -> *const ffi::sqlite3_io_methods {
    static TABLES: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&(_, table)) = tables.iter().find(|&&(known, _)| known == real as usize) {
        return table as *const _;
    }
    // SAFETY: as the caller promises.
    let mut methods = unsafe { *real };
    methods.xWrite = Some(write);
    methods.xSync = Some(sync);
    methods.xTruncate = Some(truncate);
    let table: *const FailingMethods = Box::leak(Box::new(FailingMethods { methods, real }));
    tables.push((real as usize, table as usize));
    table.cast()
}

/// Makes the failing file system the default of this process. Threads without a fault see no difference.
fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: SQLite initializes itself, and returns its default.
        let system = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
        // SAFETY: the default is never removed.
        let copy = unsafe { *system };
        let vfs = ffi::sqlite3_vfs {
            pNext: std::ptr::null_mut(),
            zName: c"failing".as_ptr(),
            pAppData: system.cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            ..copy
        };
        // SAFETY: the file system is never freed.
        let code = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 1) };
        assert_eq!(code, ffi::SQLITE_OK);
    });
}

/// Positions at which a book ends.
const POSITIONS: usize = 80;

const SETTINGS: BookSettings = BookSettings {
    strategy: DROP_OUT,
    sides: BookSides::Both,
    limits: AssessmentLimits::Nodes(20),
    look_ahead: 3,
    threads: 1,
};

/// Expands a book to its end, and stores its values. `entered` is called with the number of expansions after each.
/// Returns the text of the book.
fn expand(path: &Path, entered: &mut dyn FnMut(u64)) -> Result<String, BuildError> {
    let databases = EndsAt(3);
    let stop = SearchStop::new();
    let root = Board([1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1]);
    let mut file = BookFile::create(&RealDisk::default(), path, &Rules::AWARI, &engine())?;
    // The log is copied into the book several times.
    file.checkpoint_every(20);
    assert!(file.has_settings(&SETTINGS.text())?);
    let mut builder = BookBuilder::new(file, &root, &SETTINGS, &databases, &stop)?;
    builder.look_up()?;
    entered(builder.book().expansions());
    while builder.book().graph().len() < POSITIONS && builder.expand()? {
        entered(builder.book().expansions());
    }
    builder.store_values()?;
    Ok(builder.book().export())
}

/// Returns the number of expansions in a file, and whether values are stored that are not those that follow.
fn read(path: &Path) -> (u64, bool) {
    let file = match BookFile::open(path, &Rules::AWARI) {
        Ok(file) => file,
        // It was not made yet.
        Err(BookError::Missing(_) | BookError::Sqlite { .. }) => return (0, false),
        Err(error) => panic!("{error}"),
    };
    let book = file.load(DROP_OUT, BookSides::Both).unwrap();
    let stored = file.check_values(&book).unwrap();
    (book.expansions(), stored.is_some_and(|(_, wrong)| !wrong.is_empty()))
}

/// Fails operations of an expansion: what was entered is in the file, and another run makes the expected book.
fn fail(fault: WriteFault, expected: &UndisturbedExpansion) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("book.sqlite");
    let mut had = 0;
    inject(fault);
    let failed = expand(&path, &mut |expansions| had = expansions);
    inject(NO_FAULT);
    match failed {
        Ok(text) => assert_eq!(text, expected.text, "{fault:?}"),
        // The message names the file and what failed.
        Err(error) => assert!(error.to_string().contains("book.sqlite"), "{fault:?}: {error}"),
    }
    let (found, is_wrong) = read(&path);
    assert!(!is_wrong, "{fault:?}");
    // An expansion whose entry failed may be there.
    assert!(found == had || found == had + 1, "{fault:?}: {found} of {had} expansions");
    assert_eq!(expand(&path, &mut |_| {}).unwrap(), expected.text, "{fault:?}");
    assert_eq!(read(&path), (expected.expansions, false), "{fault:?}");
    let check = rusqlite::Connection::open(&path).unwrap();
    let sound: String = check.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok", "{fault:?}");
}

/// An undisturbed expansion.
struct UndisturbedExpansion {
    text: String,
    expansions: u64,
    /// The number of operations that may fail.
    operations: u64,
}

/// Expands a book undisturbed.
fn undisturbed() -> UndisturbedExpansion {
    register();
    let folder = tempfile::tempdir().unwrap();
    let mut expansions = 0;
    inject(NO_FAULT);
    let text = expand(&folder.path().join("book.sqlite"), &mut |entered| expansions = entered).unwrap();
    UndisturbedExpansion { text, expansions, operations: OPERATIONS.get() }
}

const FAULTS: [(bool, c_int); 4] = [
    (false, ffi::SQLITE_IOERR_WRITE),
    (true, ffi::SQLITE_IOERR_WRITE),
    (false, ffi::SQLITE_FULL),
    (true, ffi::SQLITE_FULL),
];

/// Some operations fail, once or from then on.
#[test]
fn failed_operations_lose_nothing() {
    let expected = undisturbed();
    let operations = expected.operations;
    assert!(operations > 150, "{operations}");
    let mut numbers = (1..=operations).step_by(operations as usize / 25);
    for (lasts, code) in FAULTS.into_iter().cycle() {
        let Some(first) = numbers.next() else { return };
        fail(WriteFault { first, lasts, code }, &expected);
    }
}

/// Every operation fails, once and from then on.
#[test]
#[ignore = "slow tier: builds a thousand books twice each"]
fn every_failed_operation_loses_nothing() {
    let expected = undisturbed();
    for first in 1..=expected.operations {
        for (lasts, code) in FAULTS {
            fail(WriteFault { first, lasts, code }, &expected);
        }
    }
}
