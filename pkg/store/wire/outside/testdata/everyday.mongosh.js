// What people do every day in mongosh. With READONLY=1 writes have to be refused.
function check(what, got, want) {
  if (EJSON.stringify(got) !== EJSON.stringify(want)) throw new Error(`${what}: ${EJSON.stringify(got)}, want ${EJSON.stringify(want)}`);
}
const d = db.getSiblingDB('shell');
if (process.env.READONLY) {
  check('a read', d.things.find().sort({ n: 1 }).toArray().map((x) => x.n), [1, 2, 3]);
  for (const write of [() => d.things.insertOne({}), () => d.things.deleteMany({}), () => d.things.drop(), () => d.dropDatabase(), () => d.things.createIndex({ n: 1 })]) {
    let refused = false;
    try { write(); } catch (e) { refused = e.code === 13 && /reading only/.test(e.message); }
    check('a write', refused, true);
  }
} else {
  d.things.drop();
  d.things.insertMany([{ _id: 1, n: 1, by: 'a' }, { _id: 2, n: 2, by: 'b' }, { _id: 3, n: 3, by: 'a' }]);
  check('find', d.things.find({ n: { $gt: 1 } }).sort({ n: -1 }).toArray().map((x) => x._id), [3, 2]);
  check('update', d.things.updateMany({ by: 'a' }, { $set: { x: true } }).modifiedCount, 2);
  check('count', d.things.countDocuments({ x: true }), 2);
  check('aggregate', d.things.aggregate([{ $group: { _id: '$by', n: { $sum: '$n' } } }, { $sort: { _id: 1 } }]).toArray(), [{ _id: 'a', n: 4 }, { _id: 'b', n: 2 }]);
  check('index', d.things.createIndex({ by: 1 }), 'by_1');
  check('explain', d.things.find({ by: 'a' }).explain().queryPlanner.winningPlan.inputStage.indexName, 'by_1');
  check('explain of a pipeline', d.things.explain().aggregate([{ $match: { by: 'a' } }]).queryPlanner.winningPlan.inputStage.indexName, 'by_1');
  check('getIndexes', d.things.getIndexes().length, 2);
  check('collections', d.getCollectionNames(), ['things']);
  check('databases', db.adminCommand({ listDatabases: 1 }).databases.some((x) => x.name === 'shell'), true);
  check('stats', d.things.stats().count, 3);
  check('size', d.things.totalSize() >= 0, true);
  check('server', db.serverStatus().process, 'svcd');
  check('version', db.version(), '6.0.5');
  check('hello', db.hello().setName, 'svc');
  check('distinct', d.things.distinct('by'), ['a', 'b']);
  check('rename', d.things.renameCollection('other').ok, 1);
  check('find one', d.other.findOne({ _id: 2 }).n, 2);
  d.other.drop();
  d.things.insertMany([{ n: 1 }, { n: 2 }, { n: 3 }]);
}
