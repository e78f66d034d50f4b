package main

import "strings"

// slug makes the address of a title.
func slug(title string) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(title) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
		case r == '\'' || r == '’':
		default:
			dash = true
		}
	}
	return b.String()
}

// section is what articles of one section of the blog are made of. In texts, %s is the subject.
type section struct {
	name      string
	subjects  []string
	titles    []string
	summaries []string
	sentences []string
	tags      []string
}

func sections() []section { return []section{walking(), cooking(), mending()} }

func walking() section {
	return section{
		name: "walking",
		subjects: []string{
			"the river path", "a winter ridge", "the old railway line", "the harbor wall", "a forest road", "the salt marsh",
			"the long hill", "an empty beach", "the drovers' way", "a city at dawn", "the canal", "the moor",
		},
		titles: []string{
			"A morning on %s", "What %s teaches", "Walking %s in the rain", "Two days along %s", "Why I go back to %s",
			"Getting lost near %s", "Notes from %s", "The light on %s",
		},
		summaries: []string{
			"An easy day out with more weather than planned.", "Nine miles, two sandwiches, one wrong turn.",
			"A route for people who don't like routes.", "What to carry, what to leave, and where the tea is.",
		},
		sentences: []string{
			"I start before the buses do, when %s belongs to dogs and their people.",
			"The map says an hour; %s says otherwise.", "After the second gate the wind drops and I hear my own boots.",
			"There is a bench halfway, and somebody always got there first.",
			"I have learned to look back as often as ahead, since %s is a different place in that direction.",
			"My knees prefer the way up.", "By noon the sky has made up its mind.", "A heron leaves as if it had an appointment.",
			"I eat the apple I was saving for later.", "Nothing on %s is steep, but all of it is long.",
			"The last mile is always the one that the guidebook forgets.", "Wet socks are a lesson that I pay for every spring.",
		},
		tags: []string{"day-walks", "maps", "weather", "boots", "trains", "coast", "hills", "slow-travel"},
	}
}

func cooking() section {
	return section{
		name: "cooking",
		subjects: []string{
			"rye bread", "a pot of beans", "onion soup", "pickled plums", "flat dumplings", "roast celeriac", "lentils", "a cold omelet",
			"potato pancakes", "apple butter", "barley", "a tin of sardines",
		},
		titles: []string{
			"Patience and %s", "%s for six", "The trouble with %s", "%s without a recipe", "Learning %s from a neighbor",
			"Cheap, warm, good: %s", "In praise of %s", "%s on a camping stove",
		},
		summaries: []string{
			"Four ingredients and an afternoon.", "It is hard to get wrong, and I managed.", "Better on the second day, best on the third.",
			"What to do with what is left.",
		},
		sentences: []string{
			"Everybody has an opinion on %s, and most of them are right.", "Salt goes in earlier than you think.",
			"I weigh the flour and guess the rest.", "The kitchen smells of it until Thursday.",
			"My grandmother made %s without looking.", "Low heat is an ingredient.", "Taste it, wait, taste it again.",
			"If it sticks, it isn't ready to be turned.", "The first attempt at %s went to the hens.",
			"A heavy pot forgives nearly everything.", "We eat it standing up, from the pan.", "Leftover %s is a plan for tomorrow.",
		},
		tags: []string{"bread", "vegetables", "preserving", "one-pot", "budget", "camping", "winter", "family"},
	}
}

func mending() section {
	return section{
		name: "mending",
		subjects: []string{
			"a wool sweater", "the squeaking door", "a bicycle wheel", "the kitchen chair", "a rain jacket", "the blunt knife",
			"walking boots", "a paper lamp", "the garden gate", "a leaking tap", "an old radio", "a torn tent",
		},
		titles: []string{
			"How to mend %s", "Saving %s", "An evening with %s", "Before you throw out %s", "What I got wrong about %s",
			"%s, one year on", "Small tools, and %s", "A second life for %s",
		},
		summaries: []string{
			"It took ten minutes, after I had put it off for a year.", "A visible repair, on purpose.", "Less skill than patience, and no glue.",
			"What to buy, what to borrow, and when to stop.",
		},
		sentences: []string{
			"I find %s at the bottom of the basket, where the difficult things go.", "Take a picture before you take it apart.",
			"The screw that is left over is always important.", "Beeswax solves more than it should.",
			"A repair that shows is a story; one that hides is a secret.", "It needn't be pretty to hold.",
			"By the time %s works again, I know how it was made.", "The right needle costs less than the wrong glue.",
			"Good light is half of the work.", "Somebody repaired %s before me, with blue thread.",
			"I stop when it is better, not when it is perfect.", "The tool library has one, and it is free on Tuesdays.",
		},
		tags: []string{"textiles", "wood", "bicycles", "tools", "leather", "household", "electrics", "visible-mending"},
	}
}

func firstNames() []string {
	return []string{
		"Ada", "Bruno", "Carla", "Dmitri", "Elif", "Femi", "Greta", "Hanna", "Ivo", "Jun", "Klara", "Luis",
		"Maren", "Nadia", "Oskar", "Priya", "Quentin", "Rosa", "Sven", "Teresa", "Umar", "Vera", "Wanda", "Yusuf",
	}
}

func lastNames() []string {
	return []string{
		"Almeida", "Berg", "Costa", "Dorn", "Eriksen", "Fontaine", "Grau", "Holm", "Ilves", "Jansen", "Kovac", "Lund",
		"Moreau", "Novak", "Okafor", "Petrov", "Quist", "Rossi", "Sato", "Toth", "Ueda", "Vidal", "Weber", "Zeller",
	}
}
