//! Lets a test stand between a thread and the disk: for the fault schedules of federations only.

use crate::directory::disk::Change;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// What a test does with each change of the disk: it may carry it out, or fail before or after it, or panic.
pub type Hook = Rc<dyn Fn(Change<'_>, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// From now on, this thread changes the disk through this hook; without one, directly.
pub fn set_hook(hook: Option<Hook>) {
    HOOK.with_borrow_mut(|place| *place = hook);
}

/// Carries a change out through the thread's hook.
pub(super) fn attempt<T>(change: Change<'_>, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    // Not borrowed during the call: the hook may change the disk itself.
    let Some(hook) = HOOK.with_borrow(Clone::clone) else { return act() };
    let (mut act, mut done) = (Some(act), None);
    hook(change, &mut || {
        let act = act.take().ok_or_else(|| io::Error::other("a change is carried out once"))?;
        done = Some(act()?);
        Ok(())
    })?;
    done.ok_or_else(|| io::Error::other("the hook did not carry out the change"))
}
