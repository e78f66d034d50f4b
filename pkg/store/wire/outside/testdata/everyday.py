# What people do every day with pymongo. The address is in URI; with READONLY=1 writes have to be refused.
import os
import sys

from pymongo import MongoClient, InsertOne, UpdateOne, DeleteOne, ReturnDocument
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

client = MongoClient(os.environ["URI"], serverSelectionTimeoutMS=20000)


def check(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r}, want {want!r}")


if os.environ.get("READONLY"):
    check("a read", [d["n"] for d in client.py.things.find().sort("n", 1)], [1, 2, 3])
    for write in (
        lambda: client.py.things.insert_one({}),
        lambda: client.py.things.update_one({}, {"$set": {"a": 1}}),
        lambda: client.py.things.delete_many({}),
        lambda: client.py.things.drop(),
        lambda: client.py.things.create_index("n"),
        lambda: list(client.py.things.aggregate([{"$out": "others"}])),
        lambda: client.drop_database("py"),
    ):
        try:
            write()
            sys.exit("a write went through")
        except OperationFailure as e:
            check("a write", (e.code, "reading only" in str(e)), (13, True))
    sys.exit(0)

db = client.py
things = db.things
things.drop()
things.insert_many([{"_id": i, "n": i, "tags": ["a", "b"][: i % 3]} for i in range(1, 301)])
check("count", things.count_documents({"n": {"$gt": 100}}), 200)
check("estimate", things.estimated_document_count(), 300)
check("find", [d["_id"] for d in things.find({"tags": "b"}, {"_id": 1}).sort("n", -1).limit(2)], [299, 296])
check("batches", sum(1 for _ in things.find(batch_size=7)), 300)
check("distinct", sorted(things.distinct("tags")), ["a", "b"])
check("update", things.update_many({"n": {"$lte": 10}}, {"$inc": {"n": 1000}}).modified_count, 10)
check("pipeline update", things.update_one({"_id": 1}, [{"$set": {"twice": {"$multiply": ["$n", 2]}}}]).modified_count, 1)
check("find and modify", things.find_one_and_update({"_id": 1}, {"$set": {"x": 1}}, return_document=ReturnDocument.AFTER)["twice"], 2002)
check("upsert", things.update_one({"_id": "new"}, {"$set": {"n": 0}}, upsert=True).upserted_id, "new")
bulk = things.bulk_write([InsertOne({"_id": "b"}), UpdateOne({"_id": "b"}, {"$set": {"n": 5}}), DeleteOne({"_id": "b"})])
check("bulk", (bulk.inserted_count, bulk.modified_count, bulk.deleted_count), (1, 1, 1))
try:
    things.insert_one({"_id": 1})
    sys.exit("a key twice")
except DuplicateKeyError as e:
    check("duplicate", e.details["keyValue"], {"_id": 1})
things.create_index("n", unique=True, sparse=True)
check("indexes", sorted(things.index_information()), ["_id_", "n_1"])
try:
    things.insert_many([{"n": 50}, {"n": 999}], ordered=False)
    sys.exit("a unique key twice")
except BulkWriteError as e:
    check("unique", (e.details["nInserted"], e.details["writeErrors"][0]["code"]), (1, 11000))
check("explain", things.find({"n": 50}).explain()["queryPlanner"]["winningPlan"]["inputStage"]["indexName"], "n_1")
groups = things.aggregate([{"$match": {"_id": {"$type": "number"}}}, {"$group": {"_id": {"$size": "$tags"}, "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}])
check("group", [(g["_id"], g["n"]) for g in groups], [(0, 100), (1, 100), (2, 100)])
db.others.drop()
db.others.insert_many([{"_id": 50, "name": "fifty"}])
joined = things.aggregate([{"$match": {"_id": 50}}, {"$lookup": {"from": "others", "localField": "_id", "foreignField": "_id", "as": "o"}}])
check("lookup", next(joined)["o"][0]["name"], "fifty")
with client.start_session() as session:

    def move(s):
        things.update_one({"_id": 50}, {"$set": {"moved": True}}, session=s)
        db.others.delete_one({"_id": 50}, session=s)

    session.with_transaction(move)
check("transaction", (things.find_one({"_id": 50})["moved"], db.others.count_documents({})), (True, 0))
with things.watch(max_await_time_ms=200) as stream:
    things.insert_one({"_id": "seen"})
    check("change stream", next(stream)["documentKey"], {"_id": "seen"})
check("names", sorted(db.list_collection_names()), ["others", "things"])
check("stats", db.command("dbStats")["collections"], 2)
things.delete_many({"n": {"$not": {"$lte": 3}}})
things.drop()
things.insert_many([{"n": 1}, {"n": 2}, {"n": 3}])
