package mql

import "go.mongodb.org/mongo-driver/v2/bson"

type rename struct{}

func (*rename) apply(s *updating, op *updateOp, old bson.RawValue) (bson.Type, verdict, error) { return 0, kept, nil }

type renamed struct{}

func (renamed) apply(s *updating, op *updateOp, old bson.RawValue) (bson.Type, verdict, error) { return 0, kept, nil }
