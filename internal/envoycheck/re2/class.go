// SPDX-License-Identifier: Apache-2.0

package re2

// isClass reports whether RE2 supports the name of a Unicode class in \p{…} in all supported
// releases of Envoy: "Any", general categories by their short names, and scripts. Go supports more.
func isClass(name string) bool {
	switch name {
	case "Any",
		"C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi",
		"Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Yi", "Z", "Zl", "Zp", "Zs", "Adlam", "Ahom", "Arabic", "Armenian", "Avestan", "Balinese", "Bamum",
		"Batak", "Bengali", "Bhaiksuki", "Bopomofo", "Brahmi", "Braille", "Buginese", "Buhid", "Carian", "Chakma", "Cham", "Cherokee", "Chorasmian",
		"Common", "Coptic", "Cuneiform", "Cypriot", "Cyrillic", "Deseret", "Devanagari", "Dogra", "Duployan", "Elbasan", "Elymaic", "Ethiopic", "Georgian",
		"Glagolitic", "Gothic", "Grantha", "Greek", "Gujarati", "Gurmukhi", "Han", "Hangul", "Hanunoo", "Hatran", "Hebrew", "Hiragana", "Inherited",
		"Javanese", "Kaithi", "Kannada", "Katakana", "Kawi", "Kharoshthi", "Khmer", "Khojki", "Khudawadi", "Lao", "Latin", "Lepcha", "Limbu", "Lisu",
		"Lycian", "Lydian", "Mahajani", "Makasar", "Malayalam", "Mandaic", "Manichaean", "Marchen", "Medefaidrin", "Miao", "Modi", "Mongolian", "Mro",
		"Multani", "Myanmar", "Nabataean", "Nandinagari", "Newa", "Nko", "Nushu", "Ogham", "Oriya", "Osage", "Osmanya", "Palmyrene", "Phoenician",
		"Rejang", "Runic", "Samaritan", "Saurashtra", "Sharada", "Shavian", "Siddham", "Sinhala", "Sogdian", "Soyombo", "Sundanese", "Syriac", "Tagalog",
		"Tagbanwa", "Takri", "Tamil", "Tangsa", "Tangut", "Telugu", "Thaana", "Thai", "Tibetan", "Tifinagh", "Tirhuta", "Toto", "Ugaritic", "Vai",
		"Vithkuqi", "Wancho", "Yezidi":
		return true
	default:
		return false
	}
}
