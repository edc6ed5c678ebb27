use crate::command::{Outcome, key_of};
use crate::door::Door;
use crate::execute::since;
use crate::failure::Failure;
use crate::hidden;
use crate::reply::Reply;
use crate::request::Request;
use crate::session::Session;
use crate::transaction::{Transaction, create};
use crate::values;
use base::{Buf, Key, Nanos};
use engine::{Accepted, Announced, Error, KeySpaceId, Store, Write};
use std::rc::Rc;
use std::sync::Arc;

/// Commands of a run at most.
const RUN_MAX: usize = 16;

/// One of a run. Those on one key are all of one kind.
#[derive(Debug)]
struct Step {
    key: Key,
    /// What it stores; nothing, if it reads. Of stores of one key on each other's heels only the
    /// last is done, for nobody can have seen the others. Whoever begins takes what was announced.
    store: Option<(Buf, Option<Announced>)>,
    /// Requests that it is.
    times: u32,
}

/// Plain GETs and SETs of one connection that follow each other and do not depend on each other.
/// They are done side by side.
#[derive(Debug, Default)]
pub(crate) struct Run {
    steps: Vec<Step>,
    /// Which step each request is.
    order: Vec<usize>,
}

impl Run {
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Takes `request`, if it is one that can be done with those before it.
    pub(crate) fn take(&mut self, door: &Door, session: &Session, request: Request<'_>) -> bool {
        if session.queue.is_some()
            || !session.may_do_all()
            || self.order.len() == RUN_MAX
            || request.is_too_long()
        {
            return false;
        }
        let is = |name: &[u8]| request.arg(0).eq_ignore_ascii_case(name);
        let is_store = match request.len() {
            2 if is(b"get") => false,
            3 if is(b"set") => true,
            _ => return false,
        };
        let Ok(key) = key_of(request.arg(1)) else { return false };
        let store = || is_store.then(|| (request.value(2), Some(door.store().announce())));
        match self.steps.iter().position(|step| step.key == key) {
            Some(at) if self.steps[at].store.is_some() != is_store => return false,
            Some(at) => {
                self.steps[at].store = store();
                self.steps[at].times += 1;
                self.order.push(at);
            }
            None => {
                door.store().expect(session.space(), &key);
                self.order.push(self.steps.len());
                if self.steps.len() == 1 {
                    self.steps.reserve(RUN_MAX);
                }
                self.steps.push(Step { key, store: store(), times: 1 });
            }
        }
        true
    }

    /// Does them all, and returns their answers in order.
    pub(crate) async fn finish(&mut self, door: &Rc<Door>, session: &Session) -> Vec<Reply> {
        let steps = std::mem::take(&mut self.steps);
        let order = std::mem::take(&mut self.order);
        door.counters().count_commands(order.len());
        session.wire.count_commands(order.len());
        let numbers = door.watcher().plain;
        if let Some(last) = order.last() {
            session.show(door, numbers[usize::from(steps[*last].store.is_some())]);
        }
        let (space, client) = (session.space(), session.id);
        if steps.iter().any(|step| step.store.is_some()) {
            // What other clients have sent is announced meanwhile, and goes out with these.
            clock::give_way().await;
            let stores = steps.iter().filter(|step| step.store.is_some());
            stores.for_each(|step| door.store().expect_write(space, &step.key));
        }
        let mut at_once = AtOnce { door, space, client, at: clock::host_now(), left: Vec::new() };
        let begun: Vec<_> = steps.into_iter().map(|step| at_once.begin(step)).collect();
        let mut waited = side_by_side(door, space, client, at_once.left).await.into_iter();
        let mut done: Vec<Reply> = Vec::with_capacity(begun.len());
        for begun in begun {
            done.push(match begun {
                Begun::Done(reply) => reply,
                Begun::Stored(stored) => Box::pin(stored.landed(door, space, client)).await,
                Begun::Left => waited.next().expect("each is done"),
            });
        }
        if done.len() == order.len() {
            return done;
        }
        order.into_iter().map(|at| done[at].clone()).collect()
    }
}

/// What became of a step that was begun.
enum Begun<'a> {
    Done(Reply),
    Stored(Box<AtHand<'a>>),
    /// It may have to wait, and has not begun.
    Left,
}

/// A store for which nobody had to wait until it was in the log.
struct AtHand<'a> {
    step: Step,
    began: Nanos,
    accepted: Accepted<'a>,
}

/// Does what can be done of steps while nobody is waited for, one after the other.
struct AtOnce<'a> {
    door: &'a Door,
    space: KeySpaceId,
    client: u64,
    /// When the next one begins.
    at: Nanos,
    /// The others.
    left: Vec<Step>,
}

impl<'a> AtOnce<'a> {
    fn begin(&mut self, mut step: Step) -> Begun<'a> {
        let store = self.door.store();
        match &mut step.store {
            None => {
                if let Some(value) = store.get_at_hand(self.space, &step.key) {
                    return self.done(&step, Reply::Bulk(value));
                }
            }
            Some((value, announced)) if !self.has_collections() => {
                let is_announced = announced.take().expect("it is done once");
                match store.put_at_hand(self.space, &step.key, value, is_announced) {
                    Ok(_) if store.answers_from_memory() && !self.has_collections() => {
                        return self.done(&step, Reply::OK);
                    }
                    Ok(accepted) => {
                        let began = self.lap();
                        return Begun::Stored(Box::new(AtHand { step, began, accepted }));
                    }
                    Err(is_announced) => *announced = Some(is_announced),
                }
            }
            Some(_) => {}
        }
        self.lap();
        self.left.push(step);
        Begun::Left
    }

    fn has_collections(&self) -> bool {
        self.door.store().has_key_space(hidden::roots(self.space))
    }

    fn done(&mut self, step: &Step, reply: Reply) -> Begun<'a> {
        let began = self.lap();
        tell(self.door, self.client, step, Nanos(self.at.0.saturating_sub(began.0)), &reply);
        Begun::Done(reply)
    }

    /// When the step began that ends here: the next one's time is its own.
    fn lap(&mut self) -> Nanos {
        std::mem::replace(&mut self.at, clock::host_now())
    }
}

impl AtHand<'_> {
    /// The answer, once the store is durable.
    async fn landed(self, door: &Door, space: KeySpaceId, client: u64) -> Reply {
        let Self { step, began, accepted } = self;
        let done = match door.store().put_landed(accepted).await {
            Ok(_) if !door.store().has_key_space(hidden::roots(space)) => Ok(Reply::OK),
            Ok(_) => {
                let (value, _) = step.store.as_ref().expect("it is a store");
                Box::pin(after_put(door, space, &step.key, value)).await
            }
            Err(error) => Err(error.into()),
        };
        let reply = done.unwrap_or_else(Failure::reply);
        tell(door, client, &step, since(began), &reply);
        reply
    }
}

/// Does steps that may have to wait.
async fn side_by_side(
    door: &Rc<Door>,
    space: KeySpaceId,
    client: u64,
    steps: Vec<Step>,
) -> Vec<Reply> {
    let mut does = steps.into_iter().map(|step| one(door.clone(), space, client, step));
    match does.len() {
        0 => Vec::new(),
        1 => vec![does.next().expect("it is there").await],
        _ => clock::join_at_once(does).await,
    }
}

async fn one(door: Rc<Door>, space: KeySpaceId, client: u64, mut step: Step) -> Reply {
    let began = clock::host_now();
    // Boxed, so that what is started is small to move.
    let done = match &mut step.store {
        None => Box::pin(get(&door, space, &step.key)).await,
        Some((value, announced)) => {
            let announced = announced.take().expect("it is done once");
            Box::pin(set(&door, space, &step.key, value, announced)).await
        }
    };
    let reply = done.unwrap_or_else(Failure::reply);
    tell(&door, client, &step, since(began), &reply);
    reply
}

/// Counts what was done, and keeps what took long.
fn tell(door: &Door, client: u64, step: &Step, took: Nanos, reply: &Reply) {
    let number = door.watcher().plain[usize::from(step.store.is_some())];
    let value = step.store.as_ref().map(|(value, _)| value.bytes().unwrap_or_default());
    door.watch(client, number, took, reply, || {
        let args = [number.name().as_bytes(), step.key.as_bytes()].into_iter().chain(value);
        args.collect::<Vec<_>>().into_iter()
    });
    for _ in 1..step.times {
        let is_failed = door.watcher().count_error(reply);
        door.watcher().tallies.count(number, took, is_failed);
    }
}

async fn get(door: &Door, space: KeySpaceId, key: &Key) -> Outcome {
    match door.store().get(space, key).await {
        Ok(value) => Ok(Reply::Bulk(value)),
        Err(Error::KeyNotFound | Error::NoKeySpace) => {
            if !door.store().has_key_space(hidden::roots(space)) {
                return Ok(Reply::Null);
            }
            Box::pin(again(door, async |transaction: &mut Transaction| {
                let held = values::string(transaction, space, key).await?;
                Ok(Reply::optional(held.map(|held| held.value)))
            }))
            .await
        }
        Err(error) => Err(error.into()),
    }
}

async fn set(
    door: &Door,
    space: KeySpaceId,
    key: &Key,
    value: &Buf,
    announced: Announced,
) -> Outcome {
    let store = door.store();
    // To look there may take waiting for others, who would wait for what is announced.
    let announced = Some(announced).filter(|_| !store.has_key_space(hidden::roots(space)));
    if is_collection(store, space, key).await? {
        return replace_collection(door, space, key, value).await;
    }
    put(store, space, key, value, announced.unwrap_or_else(|| store.announce())).await?;
    after_put(door, space, key, value).await
}

async fn is_collection(store: &Arc<Store>, space: KeySpaceId, key: &Key) -> Result<bool, Error> {
    let roots = hidden::roots(space);
    Ok(store.has_key_space(roots) && store.exist(roots, key).await?)
}

/// A collection that was made while a string was stored goes: none is made once there is a string.
async fn after_put(door: &Door, space: KeySpaceId, key: &Key, value: &Buf) -> Outcome {
    if is_collection(door.store(), space, key).await? {
        return replace_collection(door, space, key, value).await;
    }
    Ok(Reply::OK)
}

/// Stores a string where there is a collection, which goes in the same step.
async fn replace_collection(door: &Door, space: KeySpaceId, key: &Key, value: &Buf) -> Outcome {
    Box::pin(again(door, async |transaction: &mut Transaction| {
        values::put(transaction, space, key, value.clone(), None).await?;
        Ok(Reply::OK)
    }))
    .await
}

/// Does something as one step, until nobody comes between.
async fn again(door: &Door, does: impl AsyncFn(&mut Transaction) -> Outcome) -> Outcome {
    loop {
        let mut transaction = Transaction::new(door);
        let done = match does(&mut transaction).await {
            Ok(reply) => transaction.commit().await.map(|()| reply),
            failed => failed,
        };
        if !matches!(done, Err(Failure::Overtaken)) {
            return done;
        }
    }
}

async fn put(
    store: &Arc<Store>,
    space: KeySpaceId,
    key: &Key,
    value: &Buf,
    mut announced: Announced,
) -> Result<(), Error> {
    loop {
        match store.put(space, key, value, Write::default(), announced).await {
            Err(Error::NoKeySpace) => create(store, space).await?,
            put => return put.map(drop),
        }
        announced = store.announce();
    }
}
