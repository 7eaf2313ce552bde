//! Safe wrappers of all MPI calls of this crate.
//!
//! A buffer that the library reads or writes belongs to its [`Transfer`] from the call that starts it until the call
//! that reports its completion. A buffer that never completes is leaked, since MPI may still access it.
//!
//! All calls take the one [`MpiLibrary`] of the process by `&mut`, so no two run at the same time. This is what
//! `MPI_THREAD_SERIALIZED` requires; any thread may make them.

use messaging::{CommunicationError, Result};
use mpi::ffi;
use std::ffi::{c_char, c_int};
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The initialized MPI of this process, with a private communicator. Only one exists.
#[derive(Debug)]
pub(super) struct MpiLibrary {
    communicator: ffi::MPI_Comm,
    rank: usize,
    size: usize,
}

// SAFETY: with at least `MPI_THREAD_SERIALIZED`, which `start` checks, any thread may make the calls, one at a time;
// all of them take `&mut MpiLibrary`. The handle of a communicator is valid in all threads of the process.
unsafe impl Send for MpiLibrary {}

/// Message in transit, to or from another rank.
#[derive(Debug)]
pub(super) struct Transfer {
    request: ffi::MPI_Request,
    /// The bytes, or the buffer that receives them.
    buffer: Vec<u8>,
    length: usize,
    complete: bool,
}

// SAFETY: as for `MpiLibrary`, which every operation on a transfer needs: requests are valid in all threads.
unsafe impl Send for Transfer {}

/// Kind of a message; the number is its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MessageKind {
    /// Message of the program.
    Message = 0,
    /// Keep-alive message; without bytes, like those below.
    KeepAlive = 1,
    /// The sender leaves the job properly, and sends no more messages.
    Farewell = 2,
    /// The sender has received all farewells and messages.
    Settled = 3,
    /// The sender leaves a broken job.
    Broken = 4,
}

/// Arrived message.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) from: usize,
    pub(super) kind: MessageKind,
    /// The bytes of a message of the program, which may still be in transit.
    pub(super) transfer: Option<Transfer>,
}

/// Whether MPI was initialized: this can be done once a process.
static STARTED: AtomicBool = AtomicBool::new(false);

impl MpiLibrary {
    /// Initializes MPI.
    pub(super) fn start() -> Result<MpiLibrary> {
        const CALL: &str = "MPI_Init_thread";
        let failed = |text: String| CommunicationError::Library { call: CALL, text };
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(failed("it was already called in this process".to_owned()));
        }
        let mut provided = 0;
        let mut communicator = MaybeUninit::uninit();
        let (mut rank, mut size) = (0, 0);
        // SAFETY: `STARTED` says that this is the first call of MPI in the process, and nothing else in it uses MPI.
        // All places to write to outlive the calls. Constants of the library are never written. `communicator` is read
        // after the call that writes it was checked.
        let communicator = unsafe {
            check(
                CALL,
                ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), ffi::RSMPI_THREAD_SERIALIZED, &raw mut provided),
            )?;
            if provided < ffi::RSMPI_THREAD_SERIALIZED {
                return Err(failed(format!(
                    "this MPI provides thread level {provided}, expected at least {} (MPI_THREAD_SERIALIZED); use an \
                     MPI built with thread support",
                    ffi::RSMPI_THREAD_SERIALIZED
                )));
            }
            // Makes failures return an error code; by default they end the process.
            let world = ffi::RSMPI_COMM_WORLD;
            check("MPI_Comm_set_errhandler", ffi::MPI_Comm_set_errhandler(world, ffi::RSMPI_ERRORS_RETURN))?;
            check("MPI_Comm_dup", ffi::MPI_Comm_dup(world, communicator.as_mut_ptr()))?;
            let communicator = communicator.assume_init();
            check("MPI_Comm_set_errhandler", ffi::MPI_Comm_set_errhandler(communicator, ffi::RSMPI_ERRORS_RETURN))?;
            check("MPI_Comm_rank", ffi::MPI_Comm_rank(communicator, &raw mut rank))?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(communicator, &raw mut size))?;
            communicator
        };
        match (usize::try_from(rank), usize::try_from(size)) {
            (Ok(rank), Ok(size)) if rank < size => Ok(MpiLibrary { communicator, rank, size }),
            _ => Err(failed(format!("this is rank {rank} of {size}"))),
        }
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Starts sending. The transfer must be tested until it is complete.
    ///
    /// # Panics
    /// If there is no such rank, or the bytes do not fit a C `int`.
    pub(super) fn send(&mut self, to: usize, kind: MessageKind, bytes: Vec<u8>) -> Result<Transfer> {
        assert!(to < self.size);
        let to = to as c_int; // `size` fits one
        let count = c_int::try_from(bytes.len()).expect("the size is checked before sending");
        let mut transfer = Transfer::new(bytes, count as usize);
        // SAFETY: the buffer has `count` bytes, and stays in place and unchanged in the `Transfer` until it is
        // complete.
        let code = unsafe {
            let bytes = transfer.buffer.as_ptr().cast();
            let request = &raw mut transfer.request;
            ffi::MPI_Isend(bytes, count, ffi::RSMPI_UINT8_T, to, kind as c_int, self.communicator, request)
        };
        check("MPI_Isend", code)?;
        Ok(transfer)
    }

    /// Returns the next arrival of any rank, and starts to receive its bytes. Arrivals of one rank are in order.
    pub(super) fn next(&mut self) -> Result<Option<Arrival>> {
        let mut found = 0;
        let mut message = MaybeUninit::uninit();
        let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
        let mut count = 0;
        // SAFETY: all places to write to outlive the calls; `message` is written if something is found. A status is
        // integers, which may be zero.
        let (mut message, status) = unsafe {
            let code = ffi::MPI_Improbe(
                ffi::RSMPI_ANY_SOURCE,
                ffi::RSMPI_ANY_TAG,
                self.communicator,
                &raw mut found,
                message.as_mut_ptr(),
                status.as_mut_ptr(),
            );
            check("MPI_Improbe", code)?;
            if found == 0 {
                return Ok(None);
            }
            let code = ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &raw mut count);
            check("MPI_Get_count", code)?;
            (message.assume_init(), status.assume_init())
        };
        let (from, kind, length) = self.origin(&status, count)?;
        let mut transfer = Transfer::new(Vec::with_capacity(length), length);
        // SAFETY: `message` was matched by the call above and is used up by this one. The buffer has room for `count`
        // bytes, and stays in place and untouched in the `Transfer` until it is complete.
        let code = unsafe {
            let room = transfer.buffer.as_mut_ptr().cast();
            let request = &raw mut transfer.request;
            ffi::MPI_Imrecv(room, count, ffi::RSMPI_UINT8_T, &raw mut message, request)
        };
        check("MPI_Imrecv", code)?;
        if kind == MessageKind::Message {
            return Ok(Some(Arrival { from, kind, transfer: Some(transfer) }));
        }
        // It has no bytes, so this completes at once.
        while !self.complete(&mut transfer)? {}
        Ok(Some(Arrival { from, kind, transfer: None }))
    }

    fn origin(&self, status: &ffi::MPI_Status, count: c_int) -> Result<(usize, MessageKind, usize)> {
        let from = usize::try_from(status.MPI_SOURCE).ok().filter(|&from| from < self.size);
        let kind = [
            MessageKind::Message,
            MessageKind::KeepAlive,
            MessageKind::Farewell,
            MessageKind::Settled,
            MessageKind::Broken,
        ]
        .into_iter()
        .find(|&kind| kind as c_int == status.MPI_TAG && (kind == MessageKind::Message || count == 0));
        match (from, kind, usize::try_from(count)) {
            (Some(from), Some(kind), Ok(length)) => Ok((from, kind, length)),
            _ => Err(CommunicationError::Unexpected {
                rank: from.unwrap_or(self.size),
                expected: "messages of this program".to_owned(),
                found: format!("{count} bytes with tag {} from rank {}", status.MPI_TAG, status.MPI_SOURCE),
            }),
        }
    }

    /// Whether a transfer is complete.
    pub(super) fn complete(&mut self, transfer: &mut Transfer) -> Result<bool> {
        if !transfer.complete {
            let mut complete = 0;
            // SAFETY: the request is of a call that has not been completed yet, since it is not tested after it was.
            // `complete` outlives the call.
            let code = unsafe { ffi::MPI_Test(&raw mut transfer.request, &raw mut complete, ffi::RSMPI_STATUS_IGNORE) };
            check("MPI_Test", code)?;
            transfer.complete = complete != 0;
        }
        Ok(transfer.complete)
    }

    /// Finalizes MPI. Blocks until all other ranks do so.
    pub(super) fn finish(mut self) -> Result<()> {
        // SAFETY: the communicator was made by `start`; it and MPI are ended once, since this takes the library.
        unsafe {
            check("MPI_Comm_free", ffi::MPI_Comm_free(&raw mut self.communicator))?;
            check("MPI_Finalize", ffi::MPI_Finalize())
        }
    }

    /// Aborts the processes of all ranks.
    pub(super) fn abort(&mut self) {
        const EXIT_CODE: c_int = 101; // of a process that panicked
        // SAFETY: MPI has been started, and not ended, as long as there is a library.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, EXIT_CODE) };
    }
}

impl Transfer {
    /// Creates a transfer that has not started.
    fn new(buffer: Vec<u8>, length: usize) -> Transfer {
        // SAFETY: a constant of the library, which is never written.
        let request = unsafe { ffi::RSMPI_REQUEST_NULL };
        Transfer { request, buffer, length, complete: false }
    }

    /// Returns the bytes of a received message.
    ///
    /// # Panics
    /// If it is not complete.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        assert!(self.complete, "only a message that is there has bytes");
        let mut bytes = mem::take(&mut self.buffer);
        // SAFETY: the buffer has room for `length` bytes, and a message of that length has been written to it whole,
        // since its request is complete.
        unsafe { bytes.set_len(self.length) };
        bytes
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if !self.complete {
            mem::forget(mem::take(&mut self.buffer));
        }
    }
}

/// Returns the name and version of the MPI that this program is linked with. May be called at any time.
pub(super) fn version() -> String {
    let mut text = vec![0 as c_char; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize];
    let mut length = 0;
    // SAFETY: the call may be made before MPI is started and after its end, from any thread; it writes no more than the
    // constant says.
    let code = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr(), &raw mut length) };
    if code != SUCCESS { String::new() } else { string(&text, length) }
}

const SUCCESS: c_int = ffi::MPI_SUCCESS as c_int;

fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == SUCCESS {
        return Ok(());
    }
    let mut text = vec![0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize];
    let mut length = 0;
    // SAFETY: the code came from a call of MPI, and the call writes no more than the constant says.
    let known = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &raw mut length) } == SUCCESS;
    let text = if known { string(&text, length) } else { "no text is known for it".to_owned() };
    Err(CommunicationError::Library { call, text: format!("error {code}: {text}") })
}

/// Converts a text that the library wrote.
fn string(text: &[c_char], length: c_int) -> String {
    let length = usize::try_from(length).unwrap_or(0).min(text.len());
    let bytes: Vec<u8> = text[..length].iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
