package frame

import (
	"context"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// Def is a screen that can be opened by a key or by its name.
type Def struct {
	Key    string // digit that opens it
	Name   string // what it is called behind ":", and in hints
	Title  string // what help says about it
	Parent string // Name of the screen that esc leads to, or to that one's parent where it is of more than this one; "": it is the first one
	Of     Scope
	// Open makes the screen of a place, of which no more is given than Of says.
	Open func(h *Host, of Place) Screen
}

// Scope is what a screen is of.
type Scope uint8

// The scopes.
const (
	OfService    Scope = iota
	OfAny              // of a project, or of the service where there is none
	OfProject          // of one project
	OfCollection       // of a collection of a project
)

// Place is what a screen is of. A collection is one of the project.
type Place struct{ Namespace, Collection string }

// within leaves no more of a place than a scope has.
func (p Place) within(of Scope) Place {
	switch of {
	case OfService:
		return Place{}
	case OfCollection:
		return p
	default:
		return Place{Namespace: p.Namespace}
	}
}

// lacks says that a place is not enough for a scope.
func (p Place) lacks(of Scope) bool {
	return of >= OfProject && p.Namespace == "" || of == OfCollection && p.Collection == ""
}

// Screen is what fills the frame. Its methods are called by the loop of the program, one after the other.
type Screen interface {
	// Title is the screen's part of the path that is shown above it.
	Title() string
	// Update takes what its commands have found, or a key that the frame has no use for.
	Update(msg tea.Msg) tea.Cmd
	// View draws it in so many columns and lines at most.
	View(width, height int) string
	// Keys are those that it takes, for the footer and for help. Those that are not enabled, for lack of what they are about, are in help alone.
	Keys() []key.Binding
}

// Reader is a screen that shows what the service says. It is drawn when it has been read for the first time, and gets then
// what keys were pressed before.
type Reader interface {
	// Read asks for all that the screen shows, which Update gets. It runs beside the loop, once at a time, and must not touch what
	// the other methods use. ctx ends when the screen is left.
	Read(ctx context.Context) (tea.Msg, error)
	// Every is the pause between two reads. A read that fails is repeated after a pause that grows.
	Every() time.Duration
}

// Follower is a screen that also listens, as long as it is shown.
type Follower interface {
	// Follow calls emit with what Update gets, until ctx ends. It runs as Read does. When it ends before, it is called again after a
	// pause that grows with failures in a row.
	Follow(ctx context.Context, emit func(tea.Msg)) error
}

// Filterer is a screen whose rows can be filtered.
type Filterer interface {
	Filter(text string) // "": all are shown
	Filters() bool      // whether there are rows to be filtered now
}

// Backer is a screen that may have use for esc itself. Back says whether it had.
type Backer interface {
	Back() (cmd tea.Cmd, used bool)
}

// Typer is a screen in which text can be typed. While Typing, it gets all keys but those that end and suspend the program, and esc.
type Typer interface{ Typing() bool }

// Chooser is a screen whose cursor is on a project, which is then the one that other screens are opened of.
type Chooser interface{ Namespace() string }

// CollectionChooser is Chooser for a collection, of the project that the screen is of.
type CollectionChooser interface{ Collection() string }

// Commander is a screen with commands of its own behind ":".
type Commander interface{ Commands() []Command }

// Command is a word behind ":", with what follows it.
type Command struct {
	Name string
	Help string // such as "query WORDS": what help says
	Run  func(rest string) tea.Cmd
	Args []string // what may follow the name, for completion
}

// Shown tells a screen that it is what the frame shows now, for the first time or again.
type Shown struct{}

// Failed tells a screen that what it asked for by Host.Ask has failed, which the frame has told already.
type Failed struct{ Err error }

// When is a key that there is something for only if enabled; else help says when there is.
func When(enabled bool, shown, does, when string) key.Binding {
	if enabled {
		return Binding(shown, does)
	}
	k := Binding(shown, does+", when "+when)
	k.SetEnabled(false)
	return k
}

// Allowed is a key that there is something for only with a right, which help names where the user lacks it. A right is the name of a scope; "" is none.
func (h *Host) Allowed(right, shown, does string) key.Binding {
	return h.AllowedWhen(right, true, shown, does, "")
}

// AllowedWhen is Allowed of a key that also takes something else, as When says it.
func (h *Host) AllowedWhen(right string, enabled bool, shown, does, when string) key.Binding {
	if !h.May(right) {
		enabled, when = false, "you have the right "+right
	}
	return When(enabled, shown, does, when)
}

// Binding makes a key with its hint.
func Binding(shown, does string, keys ...string) key.Binding {
	if len(keys) == 0 {
		keys = []string{shown}
	}
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, does))
}
