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
func (s Style) State(text string) Painted {
	switch text {
	case "True", "Ready", "ready", "live":
		return Painted{text, s.Green}
	case "False", "Failed", "failed", "quarantined", "offline":
		return Painted{text, s.Red}
	default:
		return Painted{text, s.Yellow}
	}
}
