"""Talks with the keeper of a lighthouse, drawn by lot from a grammar: what the network learns to write.

A rule is a text. `[this|that]` is one of them by lot, and may lie in another one; `$sea` is a phrase of that name for
the weather, and `$colour` a word of that list.
"""

from __future__ import annotations

import re

import numpy as np

WEATHERS = {"calm": "☀", "rain": "☂", "snow": "❄", "fog": "≈", "storm": "⚡"}  # and the letter that says it
END = "\n"  # ends what somebody says
ALPHABET = " abcdefghijklmnopqrstuvwxyz.,?!':" + "".join(WEATHERS.values()) + END

WORDS = {
    "colour": "[silver|green|copper|blue|red|golden|violet]",
    "friend": "[an old whale|a grey seal|the baker's boat|my cat|a tired gull|the postman|a small crab]",
    "place": "[in the harbour|behind the island|at the white cliffs|under the old bridge|on the northern reef]",
    "food": "[fish soup|warm bread|potatoes with butter|plum cake|a bowl of beans|two eggs and toast]",
    "drink": "[black tea|hot milk|coffee|tea with honey]",
    "end": "[|||| i like that.| that is enough for me.| it is a good night to talk.| and the lamp turns on and on.]",
}
SEEN = {
    "calm": {
        "sea": "[flat as a plate|quiet and $colour|smooth, with a path of moonlight on it|asleep tonight]",
        "sky": "[clear, and full of stars|wide open and $colour in the west|so clear that i can count the stars]",
        "wind": "[only a breath|so soft that my candle stands still|resting]",
        "far": "[three ships, with $colour lights|the whole coast, from the cliffs to the town|a sail $place]",
        "deed": "[open all the windows|sit outside with $drink|row around the rock|paint the door $colour]",
    },
    "rain": {
        "sea": "[grey, and full of small rings|dull like old pewter|drumming under the rain]",
        "sky": "[low and wet|one long grey cloud|leaking, and so is my roof]",
        "wind": "[wet, and from the west|pushing the rain sideways|humming in the gutter]",
        "far": "[one lamp $place|a boat with its $colour lights on|rain, and behind it more rain]",
        "deed": "[put a bucket under the leak|dry my boots by the stove|read a book with $drink|listen to the roof]",
    },
    "snow": {
        "sea": "[black, and it eats every flake|dark between white rocks|slow and heavy with cold]",
        "sky": "[white and soft, and falling down|full of feathers|pale, and it comes down in pieces]",
        "wind": "[gentle, and full of flakes|cold, and from the north|carrying snow up to the lamp]",
        "far": "[white roofs $place|a $colour light behind the snow|the hills, white as bread]",
        "deed": "[sweep the stairs|feed the birds|make a small snowman with a $colour scarf|heat the stove for $food]",
    },
    "fog": {
        "sea": "[gone, but i hear it breathe|hidden under wool|somewhere below, and very quiet]",
        "sky": "[nowhere, it came down to drink|white like milk|as close as the window]",
        "wind": "[asleep, so the fog stays|too weak to lift the fog|still]",
        "far": "[nothing but my own hand|a shadow, perhaps $friend|a $colour glow $place]",
        "deed": "[sound the horn each minute|talk to the cat|count the bells $place|polish the $colour lens]",
    },
    "storm": {
        "sea": "[climbing the rocks|wild, and white to the horizon|as high as my kitchen window|roaring like a train]",
        "sky": "[black, with $colour lightning|torn in pieces|running from the wind]",
        "wind": "[trying every door|loud enough to sing with|strong enough to lift a goat]",
        "far": "[lightning $place|a ship that fights its way home|foam, and then a $colour flash]",
        "deed": "[tie down the boat|keep the lamp burning|hold on to my $drink|close every shutter]",
    },
}
TALKS = (
    (
        "[how is|tell me about|what about|describe|what does the sailor say of] the [sea|water|ocean]?",
        "[the sea is $sea.|it is $sea.] [i would not swim now|the seals love it|the rocks know it well|$friend told "
        "me so].$end",
    ),
    (
        "[how is|tell me about|describe|what colour is|look at] the sky?",
        "[the sky is $sky.|it is $sky.] [i look up a lot|my cat looks up too|the lamp paints it $colour].$end",
    ),
    (
        "[how is|tell me about|what about] the wind?",
        "[the wind is $wind.|it is $wind.] [it has a story for everybody|the flag knows more|$friend does not "
        "mind].$end",
    ),
    (
        "[how is the weather|what is the weather like|how is it outside|how was the day|is it cold]?",
        "the sky is $sky, and the sea is $sea. so i $deed.",
    ),
    (
        "what [do you see|can you see|is out there|is that light]?",
        "[i see $far.|look, there is $far.|from up here, $far.] [and the sea is $sea|the lamp found it|$friend saw it "
        "first].",
    ),
    (
        "what [do you do|are you doing|will you do now] [tonight|today|now|all day|here]?",
        "[i $deed|first i $deed, and then i $deed|well, i $deed]. [the wind is $wind|nobody hurries here|after that i "
        "sleep].$end",
    ),
    (
        "[do you see any ships|are there ships|where are the ships|is there a boat|see a boat]?",
        "[yes, a small one with a $colour sail.|one is $place.|two, and both want to go home.|not now, but $friend was "
        "here.] the sea is $sea.",
    ),
    (
        "[who are you|what is your name|do you live here|how old are you]?",
        "i am the keeper of this light. [i have been here for [nine|twenty|forty] winters|my hair is as white as the "
        "tower|the ships call me brother].$end",
    ),
    (
        "[hello|hi|good evening|hey|hello there|hello keeper][!|.||, how are you?]",
        "[hello, friend.|good evening.|ah, a voice!|come in, come in.] [the sea is $sea|the wind is $wind|i was "
        "about to "
        "make $drink].$end",
    ),
    (
        "[good night|bye|goodbye|sleep well|see you|thank you|thanks][!|.|]",
        "[good night, friend.|sleep well.|come back soon.|safe home.] i will leave the [lamp|light] on [for you|for "
        "$friend|as always].",
    ),
    (
        "[what do you eat|are you hungry|what is for dinner|what do you cook|do you cook|do you drink tea]?",
        "[tonight there is $food.|i cook $food.|$food, as always.] [and $drink after it|$friend gets the rest|it warms "
        "the whole tower].",
    ),
    (
        "[do you have a cat|how is the cat|where is the cat|tell me about the cat|what does the cat do]?",
        "[the cat sleeps on the [lens|stairs|map|bread]|she sits by the window and watches the "
        "[gulls|foam|lamp]|the cat "
        "is $colour in this light]. [she is the true keeper|she does not like the sea|i call her captain].",
    ),
    (
        "[are you lonely|are you alone|is it lonely there|do you miss people|are you sad|are you happy]?",
        "[sometimes, but then i $deed.|no, i have $friend.|the light is good company.] [each ship that passes says "
        "hello|and now you are here|the wind is $wind, so i listen].",
    ),
    (
        "[do you like music|do you sing|can you play a song|sing a song|what do you hear]?",
        "[i hum an old song about $friend.|i play the accordion for $friend.|listen: the wind is $wind.] [the "
        "stairs make "
        "it sound big|the cat leaves the room|it has [three|four] good notes].",
    ),
    (
        "[tell me a story|do you know a story|tell me a secret|tell me more|what happened]?",
        "once $friend came up the stairs and asked for $drink. [we talked until the lamp went pale|i never learned why|"
        "since then my door is $colour|we still write letters].",
    ),
    (
        "[what are you reading|do you read|what is in the book|do you write|any letters|do you write letters]?",
        "[a book about [islands|stars|whales|storms], with a $colour cover.|i write to my sister $place.|the log: "
        "the sea "
        "is $sea.] [i am a slow reader|a page each night|the cat sits on the best page].",
    ),
    (
        "[how is the light|does the lamp burn|tell me about the lamp|how far does the light reach|how is the lamp]?",
        "the lamp [turns and turns|burns well|has a $colour heart]. [tonight it finds $far|ships see it from [twelve|"
        "twenty|thirty] miles|i polish it each morning].$end",
    ),
    (
        "[are there whales|do you see birds|what about the gulls|where are the seals|do you know any animals]?",
        "[the gulls sit on the rail.|$friend sleeps on the rocks.|there are seals $place.] [the wind is $wind, and "
        "they "
        "know it|they wait for my $food|they are good neighbours].",
    ),
    (
        "[what do you dream of|do you dream|what do you wish for|where would you go|what do you want]?",
        "[i dream of a $colour boat|of a garden $place|i would like to see the town from the sea|a long summer and "
        "$food]. [but who would keep the light|perhaps next year|$friend dreams of the same].",
    ),
    (
        "[why do you stay|why are you there|why|do you like it here|is it good there]?",
        "because somebody must [keep the light|count the waves|be here when a ship comes]. [and i like it when the "
        "sea is "
        "$sea|and the cat likes the stairs|and where else would i $deed].",
    ),
)


UNKNOWN = "[who knows|that is far from here|ask $friend|i never thought of that]. the wind is $wind, and i $deed.$end"


def written(rule: str, weather: str, random: np.random.Generator) -> str:
    """A text of a rule, in this weather."""
    phrases = {**WORDS, **SEEN[weather]}
    while (found := re.search(r"\[([^\[\]]*)\]|\$([a-z]+)", rule)) is not None:
        if found[2]:
            text = phrases[found[2]]
        else:
            several = found[1].split("|")
            text = several[random.integers(len(several))]
        rule = rule[: found.start()] + text + rule[found.end() :]
    return rule


def strange(random: np.random.Generator) -> str:
    """A question with words that the keeper does not know."""
    letters = np.array(list(ALPHABET[1:27]))
    made = ["".join(random.choice(letters, random.integers(1, 9))) for _ in range(random.integers(1, 5))]
    known = written("[what is|do you know|can you|have you|i like|where is|the|]", "calm", random)
    return f"{known} {' '.join(made)}?".strip()


def talk(random: np.random.Generator, weather: str) -> tuple[str, str]:
    """One question in this weather, up to where the answer begins, and the answer."""
    asks, answers = TALKS[random.integers(len(TALKS))]
    if random.random() < 0.08:
        asks, answers = strange(random), UNKNOWN
    said, answer = written(asks, weather, random), written(answers, weather, random)
    if random.random() < 0.15:  # a letter is missing
        at = int(random.integers(len(said)))
        said = said[:at] + said[at + 1 :]
    if random.random() < 0.3:  # people do not always type the mark
        said = said.rstrip("?!.")
    return f"{WEATHERS[weather]}you: {said}{END}keeper:", f" {answer}{END}"
