package lang

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const (
	// maxNesting bounds how many brackets, blocks and templates may be open at
	// once. The parser and everything after it calls itself for each, and Go
	// ends a program whose stack overflows without a word that helps.
	maxNesting = 200
	// maxChain bounds the operators, dots and brackets in a row of one
	// expression, which nest in the same way: 1 + 1 + 1, !!!a, a[0][0][0].
	maxChain = 2000
)

// tooDeep finds the first place of a file that is nested too deeply to be
// parsed, nil if there is none.
func tooDeep(source []byte, name string) *hcl.Diagnostic {
	tokens, _ := hclsyntax.LexConfig(source, name, hcl.InitialPos)
	type level struct {
		lines bool // a newline ends an expression here
		chain int
	}
	open := []level{{lines: true}}
	for _, t := range tokens {
		here := &open[len(open)-1]
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen:
			here.chain++
			open = append(open, level{lines: t.Type == hclsyntax.TokenOBrace})
		case hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
			open = append(open, level{})
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen,
			hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			if len(open) > 1 {
				open = open[:len(open)-1]
			}
		case hclsyntax.TokenComma:
			here.chain = 0
		case hclsyntax.TokenNewline, hclsyntax.TokenComment: // a comment takes its newline with it
			if here.lines {
				here.chain = 0
			}
		case hclsyntax.TokenIdent, hclsyntax.TokenNumberLit, hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit, hclsyntax.TokenEOF:
		default: // operators, dots
			here.chain++
		}
		if len(open) > maxNesting || open[len(open)-1].chain > maxChain {
			return fault(t.Range, "Nested too deeply",
				"At most %d brackets may be open at once, and an expression may have %d operators in a row. Name parts of it in locals.", maxNesting, maxChain)
		}
	}
	return nil
}
