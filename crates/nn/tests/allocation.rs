//! Steady-state training allocates nothing, and one ResNet-18 worker stays below 600 MB.

#![expect(unsafe_code, reason = "a counting allocator is one by nature")]

use fedtvd_core::model::{Layout, Params};
use fedtvd_core::stream::Key;
use fedtvd_core::train::{Augment, Pass, Samples, Sgd, Trainer, Values};
use fedtvd_nn::{Cpu, models};
use std::alloc::{GlobalAlloc, Layout as Block, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Of this thread, which trains: the test harness's own thread allocates too, whenever the machine lets it run. Training
    /// on another thread would allocate here to start it.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; `realloc` and `alloc_zeroed` come through here.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        BYTES.fetch_add(block.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, block: Block) {
        BYTES.fetch_sub(block.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, block) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

// One test: the bytes belong to the whole process.
#[test]
fn training_allocates_nothing_after_its_first_pass_and_resnet18_stays_small() {
    for name in ["mlp", "lenet", "lenet-bn", "cnn-pfl", "resnet8", "resnet8-gn", "resnet18"] {
        let model = models::ALL.iter().find(|model| model.name == name).unwrap();
        let before = BYTES.load(Relaxed);
        let network = models::named(name, model.input, model.classes).unwrap();
        let size: usize = model.input.iter().product();
        let labels = (0..32).map(|row| row % 10).collect();
        let values = Values::bytes(vec![128; 32 * size], &vec![(0.0, 1.0); model.input[0]]);
        let samples = Samples::new(model.input, 10, values, labels, 32).unwrap();
        // Reading changed images must not allocate either.
        let samples = match name {
            "lenet" | "cnn-pfl" => samples.augmented(Augment { crop: 4, flip: true }),
            _ => samples,
        };
        let mut cpu = Cpu::new(&network, Arc::new(samples)).unwrap();
        let mut params = Params::initial(Arc::new(Layout::of(&network).unwrap()), 1);
        let rows: Vec<u32> = (0..32).collect();
        let mut pass =
            Pass::new(Sgd { lr: 0.01, momentum: 0.9, nesterov: false, weight_decay: 0.0 }, 32, Key::of(1));
        cpu.pass(&mut params, &rows, &pass).unwrap();
        let held = BYTES.load(Relaxed) - before;
        // Working memory included; the samples and what describes the network come on top.
        let expected = Cpu::training_memory(&network, 32, &pass.optimizer).unwrap() + (32 * size) as u128;
        assert!((held as u128) < expected + 100_000, "{name}: {held} bytes, but {expected} were expected");
        if name == "resnet18" {
            assert!(held < 600_000_000, "{held} bytes");
            continue;
        }
        pass.epochs = 3;
        pass.batch = 7;
        let count = ALLOCATIONS.get();
        cpu.pass(&mut params, &rows, &pass).unwrap();
        assert_eq!(ALLOCATIONS.get(), count, "{name}");
    }
}
