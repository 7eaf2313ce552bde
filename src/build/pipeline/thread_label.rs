//! The label of a thread: the stage that it works for, where several stages run at the same time.
//!
//! Threads that a stage starts for its work inherit the label explicitly.

use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static LABEL: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Returns the label of this thread.
pub fn label() -> Option<Arc<str>> {
    LABEL.with_borrow(Option::clone)
}

/// Does some work under a label.
pub fn labelled<T>(label: Option<Arc<str>>, work: impl FnOnce() -> T) -> T {
    struct Former(Option<Arc<str>>);
    impl Drop for Former {
        fn drop(&mut self) {
            LABEL.set(self.0.take());
        }
    }
    let _former = Former(LABEL.replace(label));
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_end_with_the_work() {
        assert_eq!(label(), None);
        labelled(Some("sweep:9".into()), || {
            labelled(Some("inner".into()), || assert_eq!(label().as_deref(), Some("inner")));
            assert_eq!(label().as_deref(), Some("sweep:9"));
            let panicked = std::panic::catch_unwind(|| labelled(None, || panic!("a panic")));
            assert!(panicked.is_err() && label().as_deref() == Some("sweep:9"));
        });
        assert_eq!(label(), None);
    }
}
