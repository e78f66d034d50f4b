package output

// Style paints text for a terminal; the zero Style leaves it plain.
type Style struct{ Color bool }

// Painted is text for a table cell with its color.
type Painted struct {
	Text  string
	Paint func(string) string
}

func (s Style) paint(code string) func(string) string {
	if !s.Color {
		return func(text string) string { return text }
	}
	return func(text string) string { return "\x1b[" + code + "m" + text + "\x1b[0m" }
}

// Red marks what is wrong, Yellow what needs attention, Green what is well, Bold a heading. The text says so too:
// color alone never carries a meaning.
func (s Style) Red(text string) string { return s.paint("31")(text) }

// Yellow marks what needs attention.
func (s Style) Yellow(text string) string { return s.paint("33")(text) }

// Green marks what is well.
func (s Style) Green(text string) string { return s.paint("32")(text) }

// Bold marks a heading.
func (s Style) Bold(text string) string { return s.paint("1")(text) }

// State paints the status of a condition, a phase or an index.
func (s Style) State(text string) Painted { return s.Toned(text, ToneOf(text)) }

// Toned paints text by its tone.
func (s Style) Toned(text string, tone Tone) Painted {
	switch tone {
	case ToneGood:
		return Painted{text, s.Green}
	case ToneBad:
		return Painted{text, s.Red}
	case ToneWarn:
		return Painted{text, s.Yellow}
	default:
		return Painted{Text: text}
	}
}

// Tone is what a state means to who reads it.
type Tone uint8

// The tones.
const (
	ToneNone Tone = iota // it is no state
	ToneGood             // all is well
	ToneWarn             // it is on its way, or needs attention
	ToneBad              // something is wrong
)

// ToneOf gives the tone of the word for a state: that of a condition, a phase, an index, a run, or of what makes vectors.
func ToneOf(state string) Tone {
	switch state {
	case "True", "Ready", "ready", "live", "closed", "succeeded":
		return ToneGood
	case "False", "Failed", "failed", "quarantined", "offline", "open", "lost":
		return ToneBad
	}
	return ToneWarn
}

// ToneOfCondition gives the tone of the status of a condition. OutOfDate, Reconciling and Stalled are not well when True.
func ToneOfCondition(typ, status string) Tone {
	switch {
	case typ == "Stalled":
		return ToneBad
	case typ != "OutOfDate" && typ != "Reconciling":
		return ToneOf(status)
	case status == "False":
		return ToneGood
	}
	return ToneWarn
}
