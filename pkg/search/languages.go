package search

import (
	"maps"
	"slices"
	"strings"
)

// Languages lists the languages whose words are known by their endings and stop words, sorted.
func Languages() []string {
	return strings.Fields("ar bg ca ckb cs da de el en es eu fa fi fr ga gl hi hr hu hy id it ja ko nb nl nn no pl pt ro ru sv tr zh")
}

// named are languages as MongoDB calls them in text indexes.
func named() map[string]string {
	return map[string]string{
		"danish": "da", "dutch": "nl", "english": "en", "finnish": "fi", "french": "fr", "german": "de", "hungarian": "hu", "italian": "it",
		"norwegian": "no", "portuguese": "pt", "romanian": "ro", "russian": "ru", "spanish": "es", "swedish": "sv", "turkish": "tr",
	}
}

// Language gives the language that a tag (de, de-AT) or a name (german) stands for: one of Languages, or "" for text of which nothing
// is known, which none stands for, too. ok is false if the name says nothing.
func Language(name string) (language string, ok bool) {
	name = strings.ToLower(name)
	if name == "" || name == "none" {
		return "", true
	}
	if tag, known := named()[name]; known {
		return tag, true
	}
	tag, _, _ := strings.Cut(name, "-")
	if slices.Contains(Languages(), tag) {
		return tag, true
	}
	return "", false
}

// LanguageNames lists what Language knows, for messages.
func LanguageNames() []string {
	return slices.Concat([]string{"none"}, Languages(), slices.Sorted(maps.Keys(named())))
}
