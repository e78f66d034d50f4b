package local

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

const (
	maxConfigBytes = 1 << 20  // of each of the small JSON files
	maxVocabBytes  = 64 << 20 // of tokenizer.json and vocab.txt
)

// folder is what the files of a model say, apart from its weights.
type folder struct {
	config    config
	tokenizer *tokenizer
	pooling   pooling
	normalize bool
}

// config is config.json, as far as it matters here.
type config struct {
	ModelType        string  `json:"model_type"`
	Hidden           int     `json:"hidden_size"`
	Layers           int     `json:"num_hidden_layers"`
	Heads            int     `json:"num_attention_heads"`
	Intermediate     int     `json:"intermediate_size"`
	Activation       string  `json:"hidden_act"`
	Positions        int     `json:"max_position_embeddings"`
	PositionType     string  `json:"position_embedding_type"`
	TypeVocab        int     `json:"type_vocab_size"`
	Vocab            int     `json:"vocab_size"`
	Epsilon          float64 `json:"layer_norm_eps"`
	IsDecoder        bool    `json:"is_decoder"`
	AddCrossAttended bool    `json:"add_cross_attention"`
}

func readFolder(dir fs.FS) (*folder, error) {
	f := &folder{config: config{PositionType: "absolute", Epsilon: 1e-12, TypeVocab: 2}}
	if err := readJSON(dir, "config.json", maxConfigBytes, &f.config); err != nil {
		return nil, err
	}
	if err := f.config.check(); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	transformer, err := f.readModules(dir)
	if err != nil {
		return nil, err
	}
	if f.tokenizer, err = readTokenizer(dir); err != nil {
		return nil, err
	}
	for piece, id := range f.tokenizer.vocab {
		if int(id) >= f.config.Vocab {
			return nil, fmt.Errorf("%q has the id %d, and config.json has a vocab_size of %d", piece, id, f.config.Vocab)
		}
	}
	f.tokenizer.lowerFirst = transformer.LowerCase
	f.tokenizer.limit = f.config.Positions
	if n := transformer.MaxTokens; n != nil {
		if *n < 3 {
			return nil, fmt.Errorf("sentence_bert_config.json: a max_seq_length of %d leaves no room for a word", *n)
		}
		f.tokenizer.limit = min(*n, f.config.Positions)
	}
	return f, nil
}

func (c *config) check() error {
	switch {
	case c.ModelType != "bert":
		return fmt.Errorf("model_type %q: only bert is served", c.ModelType)
	case c.Activation != "gelu":
		return fmt.Errorf("hidden_act %q: only gelu is served", c.Activation)
	case c.PositionType != "absolute":
		return fmt.Errorf("position_embedding_type %q: only absolute is served", c.PositionType)
	case c.IsDecoder || c.AddCrossAttended:
		return errors.New("a decoder gives no embeddings")
	case c.Epsilon < 0 || c.Epsilon > 1:
		return fmt.Errorf("layer_norm_eps %g is not between 0 and 1", c.Epsilon)
	}
	for _, n := range []struct {
		name       string
		value, top int
	}{
		{"hidden_size", c.Hidden, 8192},
		{"num_hidden_layers", c.Layers, 128},
		{"num_attention_heads", c.Heads, 256},
		{"intermediate_size", c.Intermediate, 65536},
		{"max_position_embeddings", c.Positions, 8192},
		{"type_vocab_size", c.TypeVocab, 64},
		{"vocab_size", c.Vocab, 1 << 20},
	} {
		if n.value < 1 || n.value > n.top {
			return fmt.Errorf("%s %d is not between 1 and %d", n.name, n.value, n.top)
		}
	}
	if c.Positions < 3 {
		return fmt.Errorf("max_position_embeddings %d leaves no room for a word", c.Positions)
	}
	if c.Hidden%(c.Heads*lanes) != 0 || c.Intermediate%lanes != 0 {
		return fmt.Errorf("hidden_size %d is not a multiple of %d times num_attention_heads %d, or intermediate_size %d not one of %d",
			c.Hidden, lanes, c.Heads, c.Intermediate, lanes)
	}
	return nil
}

// transformerConfig is sentence_bert_config.json.
type transformerConfig struct {
	MaxTokens *int `json:"max_seq_length"`
	LowerCase bool `json:"do_lower_case"`
}

// readModules reads what comes after the network. A folder without modules.json is that of a plain BERT, which
// sentence-transformers completes by mean pooling.
func (f *folder) readModules(dir fs.FS) (transformerConfig, error) {
	var transformer transformerConfig
	err := readJSON(dir, "sentence_bert_config.json", maxConfigBytes, &transformer)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return transformer, err
	}
	var modules []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	err = readJSON(dir, "modules.json", maxConfigBytes, &modules)
	if errors.Is(err, fs.ErrNotExist) {
		f.pooling = meanPooling
		return transformer, nil
	}
	if err != nil {
		return transformer, err
	}
	names := make([]string, 0, len(modules))
	for _, m := range modules {
		names = append(names, m.Type[strings.LastIndexByte(m.Type, '.')+1:])
	}
	switch strings.Join(names, " ") {
	case "Transformer Pooling":
	case "Transformer Pooling Normalize":
		f.normalize = true
	default:
		return transformer, fmt.Errorf("modules.json has the modules %v: Transformer, Pooling and perhaps Normalize are served, in this order", names)
	}
	if modules[0].Path != "" {
		return transformer, fmt.Errorf("modules.json has the transformer in %q: only one beside it is read", modules[0].Path)
	}
	f.pooling, err = readPooling(dir, modules[1].Path)
	return transformer, err
}

func readPooling(dir fs.FS, folder string) (pooling, error) {
	name := path.Join(folder, "config.json")
	if !fs.ValidPath(name) || folder == "" {
		return 0, fmt.Errorf("modules.json has the pooling in %q, which is no folder inside the model's", folder)
	}
	var raw map[string]json.RawMessage
	if err := readJSON(dir, name, maxConfigBytes, &raw); err != nil {
		return 0, err
	}
	var modes []string
	for key, value := range raw {
		if mode, ok := strings.CutPrefix(key, "pooling_mode_"); ok && string(value) == "true" {
			modes = append(modes, mode)
		}
	}
	if len(modes) == 1 && modes[0] == "mean_tokens" {
		return meanPooling, nil
	}
	if len(modes) == 1 && modes[0] == "cls_token" {
		return clsPooling, nil
	}
	return 0, fmt.Errorf("%s asks for pooling by %v: one of mean_tokens and cls_token is served", name, modes)
}

// tokenizerFile is tokenizer.json, as far as it matters here.
type tokenizerFile struct {
	AddedTokens []addedToken `json:"added_tokens"`
	Normalizer  struct {
		Type          string `json:"type"`
		CleanText     bool   `json:"clean_text"`
		HandleChinese bool   `json:"handle_chinese_chars"`
		StripAccents  *bool  `json:"strip_accents"`
		Lowercase     bool   `json:"lowercase"`
	} `json:"normalizer"`
	PreTokenizer struct {
		Type string `json:"type"`
	} `json:"pre_tokenizer"`
	Model struct {
		Type     string           `json:"type"`
		Unknown  string           `json:"unk_token"`
		Prefix   string           `json:"continuing_subword_prefix"`
		MaxChars int              `json:"max_input_chars_per_word"`
		Vocab    map[string]int32 `json:"vocab"`
	} `json:"model"`
}

// addedToken is a piece that is looked for before all else.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LeftStrip  bool   `json:"lstrip"`
	RightStrip bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// tokenizerConfig is tokenizer_config.json. It has the last word where it says something.
type tokenizerConfig struct {
	Lowercase     *bool `json:"do_lower_case"`
	StripAccents  *bool `json:"strip_accents"`
	HandleChinese *bool `json:"tokenize_chinese_chars"`
	specialTokens
}

// specialTokens is special_tokens_map.json: names that differ from those of BERT.
type specialTokens struct {
	Unknown specialToken `json:"unk_token"`
	First   specialToken `json:"cls_token"`
	Final   specialToken `json:"sep_token"`
	Padding specialToken `json:"pad_token"`
	Mask    specialToken `json:"mask_token"`
}

// specialToken is written as a string, or as an object with the string in it.
type specialToken string

func (s *specialToken) UnmarshalJSON(b []byte) error {
	var object struct {
		Content string `json:"content"`
	}
	if len(b) > 0 && b[0] == '{' {
		err := json.Unmarshal(b, &object)
		*s = specialToken(object.Content)
		return err
	}
	return json.Unmarshal(b, (*string)(s))
}

func readTokenizer(dir fs.FS) (*tokenizer, error) {
	names := specialTokens{Unknown: "[UNK]", First: "[CLS]", Final: "[SEP]", Padding: "[PAD]", Mask: "[MASK]"}
	settings := tokenizerConfig{specialTokens: names}
	for _, one := range []struct {
		name string
		into any
	}{{"special_tokens_map.json", &settings.specialTokens}, {"tokenizer_config.json", &settings}} {
		if err := readJSON(dir, one.name, maxConfigBytes, one.into); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	t, err := readTokenizerJSON(dir)
	if errors.Is(err, fs.ErrNotExist) {
		t, err = readVocabulary(dir, settings.specialTokens)
	}
	if err != nil {
		return nil, err
	}
	if v := settings.Lowercase; v != nil {
		if t.stripAccents == t.lowercase { // it follows, unless it is set by itself
			t.stripAccents = *v
		}
		t.lowercase = *v
	}
	if v := settings.StripAccents; v != nil {
		t.stripAccents = *v
	}
	if v := settings.HandleChinese; v != nil {
		t.spaceChinese = *v
	}
	for piece, id := range t.vocab {
		if !utf8.ValidString(piece) || id < 0 {
			return nil, fmt.Errorf("the vocabulary has the piece %q with the id %d", piece, id)
		}
		t.longest = max(t.longest, len(piece))
	}
	for _, s := range t.special {
		first, _ := utf8.DecodeRuneInString(s)
		t.firstOfSpecial += string(first)
	}
	for _, s := range []struct {
		name specialToken
		id   *int32
	}{{settings.Unknown, &t.unknown}, {settings.First, &t.first}, {settings.Final, &t.final}} {
		id, ok := t.vocab[string(s.name)]
		if !ok {
			return nil, fmt.Errorf("the vocabulary has no %q", s.name)
		}
		*s.id = id
	}
	return t, nil
}

func readTokenizerJSON(dir fs.FS) (*tokenizer, error) {
	var file tokenizerFile
	if err := readJSON(dir, "tokenizer.json", maxVocabBytes, &file); err != nil {
		return nil, err
	}
	if m, n, p := file.Model.Type, file.Normalizer.Type, file.PreTokenizer.Type; m != "WordPiece" || n != "BertNormalizer" || p != "BertPreTokenizer" {
		return nil, fmt.Errorf("tokenizer.json has model %q, normalizer %q and pre_tokenizer %q: only those of BERT are served (WordPiece, BertNormalizer, BertPreTokenizer)",
			m, n, p)
	}
	if file.Model.MaxChars < 1 {
		return nil, fmt.Errorf("tokenizer.json: max_input_chars_per_word %d", file.Model.MaxChars)
	}
	t := &tokenizer{
		vocab: file.Model.Vocab, prefix: file.Model.Prefix, maxChars: file.Model.MaxChars,
		normalizer: normalizer{
			cleanText: file.Normalizer.CleanText, spaceChinese: file.Normalizer.HandleChinese,
			stripAccents: file.Normalizer.Lowercase, lowercase: file.Normalizer.Lowercase,
		},
	}
	if v := file.Normalizer.StripAccents; v != nil {
		t.stripAccents = *v
	}
	for _, a := range file.AddedTokens {
		if a.SingleWord || a.LeftStrip || a.RightStrip || a.Normalized || a.Content == "" {
			return nil, fmt.Errorf("tokenizer.json: added token %q is looked for in a way that is not served (single_word, lstrip, rstrip, normalized)", a.Content)
		}
		if id, ok := t.vocab[a.Content]; !ok || id != a.ID {
			return nil, fmt.Errorf("tokenizer.json: added token %q with the id %d is not in the vocabulary", a.Content, a.ID)
		}
		t.special = append(t.special, a.Content)
	}
	return t, nil
}

// readVocabulary reads vocab.txt: a piece in each line, whose number is its id.
func readVocabulary(dir fs.FS, names specialTokens) (*tokenizer, error) {
	text, err := readFile(dir, "vocab.txt", maxVocabBytes)
	if err != nil {
		return nil, fmt.Errorf("there is no tokenizer.json, nor a vocabulary: %w", err)
	}
	t := &tokenizer{
		vocab: map[string]int32{}, prefix: "##", maxChars: 100,
		normalizer: normalizer{cleanText: true, spaceChinese: true, stripAccents: true, lowercase: true},
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for id := int32(0); lines.Scan(); id++ {
		t.vocab[lines.Text()] = id
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("vocab.txt: %w", err)
	}
	for _, s := range []specialToken{names.Unknown, names.First, names.Final, names.Padding, names.Mask} {
		if _, ok := t.vocab[string(s)]; ok {
			t.special = append(t.special, string(s))
		}
	}
	return t, nil
}

func readJSON(dir fs.FS, name string, limit int64, into any) error {
	text, err := readFile(dir, name, limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readFile reads a file of at most limit bytes.
func readFile(dir fs.FS, name string, limit int64) ([]byte, error) {
	file, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return text, nil
}
