package fieldtype

import (
	"slices"

	"github.com/svcctl/svc/pkg/errs"
)

// Field is one declared field. It is immutable once it is part of a Tree.
type Field struct {
	Name     string
	Path     string // dotted path from the top of the record, without list positions
	Type     Type
	Rules    []Rule
	Sub      *Tree // fields inside an object, each object of a list, or an object in an any field; nil takes anything
	Strict   bool  // undeclared names inside Sub are refused, as if Sub were strict
	Readonly bool
	Hidden   bool
	Default  any   // set on create when the field is absent; nil for none
	Choices  []any // the only values allowed (of each item in a list), unless FreeSolo; empty allows any
	FreeSolo bool
	Foreign  *Foreign

	Translated bool // at the top of a record: it may have a value for each language

	holder  bool   // it holds translations, and is not there without
	partial bool   // it is a translation, which lacks what is not translated
	elem    *Field // of a list: its items
	file    *Tree  // of a file: its members
	choices []any  // Choices as they are stored
}

// Foreign is what a field refers to: the Key of a record in a Collection.
type Foreign struct {
	Namespace  string // "" is the same project
	Collection string
	Key        string // "" and "_id" are the record's id: the field stores ObjectIDs and takes hex
	Label      string
}

// KeyPath is the stored path of the field that the values are of, in the other collection.
func (f *Foreign) KeyPath() string {
	if f.Key == "" || f.Key == "id" {
		return "_id"
	}
	return f.Key
}

// HoldsIDs says that values of the field are ids of records: stored as ObjectIDs, 24 hex digits to others.
func (f *Field) HoldsIDs() bool { return f.holdsIDs() }

func (f *Field) holdsIDs() bool {
	return f.Foreign != nil && f.Foreign.KeyPath() == "_id"
}

// IsList says that the field holds a list of its type's items.
func (f *Field) IsList() bool {
	_, ok := f.Type.(listType)
	return ok
}

// Has says that the field is under a rule.
func (f *Field) Has(rule string) bool {
	return slices.ContainsFunc(f.Rules, func(r Rule) bool { return r.Name == rule })
}

// Cast turns a constant that a query compares the field with into the form that stored values have.
func (f *Field) Cast(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	return f.Type.Cast(f, v)
}

// prepare fills what is derived from the declaration. It is called once, by NewTree.
func (f *Field) prepare() {
	if list, ok := f.Type.(listType); ok {
		f.elem = &Field{Name: f.Name, Path: f.Path, Type: list.item, Sub: f.Sub, Strict: f.Strict, Foreign: f.Foreign}
		f.elem.prepare()
	}
	if _, ok := f.Type.(fileType); ok {
		f.file = fileTree(f.Path)
	}
	item := f.item()
	f.choices = nil
	for _, choice := range f.Choices {
		cast, err := item.Cast(normalize(choice))
		if err != nil { // only an Untyped fails, and a config has none
			continue
		}
		f.choices = append(f.choices, cast)
	}
}

// item is the field of a list's items, or the field itself.
func (f *Field) item() *Field {
	if f.elem != nil {
		return f.elem
	}
	return f
}

// CheckConfig tells what in the field's own declaration cannot work: choices of another type, a default that the type
// or the rules refuse, subfields in a type without any, a foreign key on a type that can't hold one. Paths are members
// of the field's config.
func (f *Field) CheckConfig() []errs.FieldError {
	var problems []errs.FieldError
	add := func(path, message string) {
		problems = append(problems, errs.FieldError{Path: path, Rule: "config", Message: message})
	}
	own := *f
	own.prepare()
	own.checkShape(add)
	for _, choice := range f.Choices {
		c := Check{}
		own.item().Type.Parse(own.item(), normalize(choice), &c)
		for _, p := range c.Problems {
			add("meta.choices", p.Message)
		}
	}
	if f.Default != nil {
		c := Check{}
		own.check(normalize(f.Default), &c)
		for _, p := range c.Problems {
			add("meta.defaultValue", p.Message)
		}
	}
	return problems
}

// checkShape refuses subfields and foreign keys that the type has no use for.
func (f *Field) checkShape(add func(path, message string)) {
	kind := f.item().Type
	if f.Sub != nil && kind != (objectType{}) && kind != (anyType{}) {
		add("subFields", "a field of type "+f.Type.Name()+" has no subFields; only object, object[] and any have")
	}
	if f.Foreign == nil {
		if f.Has("exists") {
			add("validator.exists", "exists needs meta.foreign, which says where the record must exist")
		}
		return
	}
	if kind != (stringType{}) && kind != (numberType{}) && kind != (anyType{}) {
		add("meta.foreign", "a field of type "+f.Type.Name()+" can't refer to records; use string, string[], number, number[] or any")
		return
	}
	if f.holdsIDs() {
		f.checkIDs(kind, add)
	}
}

// checkIDs refuses what can't be together with ids: other types than text, and rules that judge text.
func (f *Field) checkIDs(kind Type, add func(path, message string)) {
	if kind != (stringType{}) {
		add("meta.foreign", "ids are stored in fields of type string and string[]; use one of them, or give foreign another key")
	}
	for _, r := range f.Rules {
		switch r.Name {
		case "required", "unique", "exists", "script":
			continue
		case "min", "max", "len", "minItems", "maxItems", "uniqueItems":
			if f.IsList() {
				continue
			}
		}
		add("validator."+r.Name, r.Name+" does not apply to a field that holds ids")
	}
}
