//! State that a kind of stage keeps in memory from one stage to the next of the same process.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// One value of each type. No result depends on it: a stage that misses its state loads it from files.
#[derive(Default)]
pub(crate) struct KeptState(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl KeptState {
    /// Returns the value of a type, made at the first call.
    pub(crate) fn of<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        Arc::clone(value).downcast().expect("values are kept by their type")
    }
}
