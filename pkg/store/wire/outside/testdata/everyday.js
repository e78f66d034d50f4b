// What people do every day with the driver for Node. The address is in URI; with READONLY=1 writes have to be refused.
const { MongoClient } = require(require.resolve('mongodb', { paths: [process.env.MODULES] }));
const assert = require('node:assert/strict');

async function main() {
  const client = await new MongoClient(process.env.URI, { serverSelectionTimeoutMS: 20000 }).connect();
  try {
    await (process.env.READONLY ? readOnly : everyday)(client);
  } finally {
    await client.close();
  }
}

async function readOnly(client) {
  const db = client.db('node');
  const things = db.collection('things');
  assert.deepEqual((await things.find().sort({ n: 1 }).toArray()).map((d) => d.n), [1, 2, 3]);
  for (const write of [
    () => things.insertOne({}), () => things.updateOne({}, { $set: { a: 1 } }), () => things.deleteMany({}), () => things.drop(),
    () => things.createIndex({ n: 1 }), () => things.aggregate([{ $merge: 'others' }]).toArray(), () => db.dropDatabase(),
  ]) {
    await assert.rejects(write, (e) => e.code === 13 && /reading only/.test(e.message));
  }
}

async function everyday(client) {
  const db = client.db('node');
  const things = db.collection('things');
  await things.deleteMany({});
  await things.insertMany(Array.from({ length: 300 }, (_, i) => ({ _id: i + 1, n: i + 1, by: 'ab'[i % 2] })));
  assert.equal(await things.countDocuments({ n: { $gt: 100 } }), 200);
  let seen = 0;
  for await (const _ of things.find({}, { batchSize: 7 })) seen++;
  assert.equal(seen, 300);
  assert.deepEqual(await things.distinct('by'), ['a', 'b']);
  assert.equal((await things.updateMany({ by: 'a' }, { $inc: { n: 1 } })).modifiedCount, 150);
  assert.equal((await things.findOneAndUpdate({ _id: 1 }, [{ $set: { twice: { $multiply: ['$n', 2] } } }], { returnDocument: 'after' })).twice, 4);
  assert.equal((await things.replaceOne({ _id: 'new' }, { x: 1 }, { upsert: true })).upsertedId, 'new');
  await assert.rejects(() => things.insertOne({ _id: 1 }), (e) => e.code === 11000);
  const bulk = await things.bulkWrite([
    { insertOne: { document: { _id: 'b' } } }, { updateOne: { filter: { _id: 'b' }, update: { $set: { n: 1 } } } }, { deleteOne: { filter: { _id: 'b' } } },
  ]);
  assert.deepEqual([bulk.insertedCount, bulk.modifiedCount, bulk.deletedCount], [1, 1, 1]);
  await things.createIndex({ by: 1, n: -1 });
  assert.deepEqual((await things.indexes()).map((i) => i.name), ['_id_', 'by_1_n_-1']);
  const groups = await things.aggregate([{ $match: { by: { $exists: true } } }, { $group: { _id: '$by', n: { $sum: 1 } } }, { $sort: { _id: 1 } }]).toArray();
  assert.deepEqual(groups, [{ _id: 'a', n: 150 }, { _id: 'b', n: 150 }]);
  const facets = await things.aggregate([{ $facet: { all: [{ $count: 'n' }], top: [{ $sort: { n: -1, _id: 1 } }, { $limit: 1 }] } }]).next();
  assert.equal(facets.all[0].n, 301);
  await client.withSession((session) => session.withTransaction(async () => {
    await things.updateOne({ _id: 1 }, { $set: { moved: true } }, { session });
    await db.collection('others').updateOne({ _id: 1 }, { $inc: { moves: 1 } }, { upsert: true, session });
  }));
  assert.equal((await things.findOne({ _id: 1 })).moved, true);
  const stream = things.watch();
  let event;
  const told = stream.next().then((e) => { event = e; });
  for (let i = 0; !event; i++) { // the stream begins when its first answer has come
    await things.insertOne({ _id: `seen ${i}` });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await told;
  assert.match(event.documentKey._id, /^seen/);
  await stream.close();
  await things.drop();
  await things.insertMany([{ n: 1 }, { n: 2 }, { n: 3 }]);
}

main().catch((e) => { console.error(e); process.exit(1); });
