package wire

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// wantsImages reads {changeStreamPreAndPostImages: {enabled}}.
func (k *call) wantsImages() (enabled, given bool, err error) {
	options := k.args.document("changeStreamPreAndPostImages")
	if k.args.err != nil || options == nil {
		return false, false, k.args.err
	}
	if err := onlyFields(k.name+".changeStreamPreAndPostImages", options, "enabled", ""); err != nil {
		return false, false, err
	}
	a := args{body: options}
	if a.value("enabled").Type == 0 {
		return false, false, fail(codeMissingField, "BSON field '%s.changeStreamPreAndPostImages.enabled' is missing but a required field", k.name)
	}
	enabled = a.boolean("enabled", false)
	return enabled, true, a.err
}

// keepImages has change streams of a collection know what documents were and became, from now on.
func (k *call) keepImages(db store.Database, name string, keep bool) error {
	keeper, ok := db.Collection(name).(store.ImageKeeper)
	switch {
	case !ok && keep:
		return notImplemented("'" + k.name + ".changeStreamPreAndPostImages'")
	case !ok:
		return nil
	}
	err := keeper.KeepImages(k.ctx, keep)
	if errors.Is(err, errs.ErrNotFound) {
		return fail(codeNamespaceNotFound, "ns does not exist: %s", k.namespace(name))
	}
	return err
}

// runCollMod changes the one option that a collection has.
func runCollMod(k *call) (bson.D, error) {
	db, name, err := k.collection()
	if err != nil {
		return nil, err
	}
	keep, given, err := k.wantsImages()
	if err != nil {
		return nil, err
	}
	if err := k.mustExist(db, name); err != nil || !given {
		return bson.D{}, err
	}
	return bson.D{}, k.keepImages(db, name, keep)
}

// collectionOptions are those that a collection was created with, as the server lists them.
func (k *call) collectionOptions(db store.Database, name string) (bson.D, error) {
	keeper, ok := db.Collection(name).(store.ImageKeeper)
	if !ok {
		return bson.D{}, nil
	}
	keeps, err := keeper.KeepsImages(k.ctx)
	if err != nil || !keeps {
		return bson.D{}, err
	}
	return bson.D{{Key: "changeStreamPreAndPostImages", Value: bson.D{{Key: "enabled", Value: true}}}}, nil
}
