"""Characters by name: the sets of ISO 8879 that the DTDs of patents and articles take them from."""

from __future__ import annotations

import html
import re
import unicodedata
import zipfile
from pathlib import Path

import pytest

from perikope.formats._entities import PREDEFINED, characters

SETS = {
    "ISOlat1": """
        aacute Aacute acirc Acirc agrave Agrave aring Aring atilde Atilde auml Auml aelig AElig ccedil Ccedil eth ETH eacute ecirc
        egrave euml iacute icirc igrave iuml ntilde oacute ocirc ograve oslash otilde ouml szlig thorn THORN uacute ucirc ugrave
        uuml yacute yuml
    """,
    "ISOlat2": """
        abreve amacr aogon cacute ccaron ccirc cdot dcaron dstrok ecaron edot emacr eogon gacute gbreve Gcedil gcirc gdot hcirc
        hstrok Idot imacr ijlig IJlig inodot iogon itilde jcirc kcedil kgreen lacute lcaron lcedil lmidot lstrok nacute eng ENG
        napos ncaron ncedil odblac omacr oelig racute rcaron rcedil sacute scaron scedil scirc tcaron tcedil tstrok ubreve udblac
        umacr uogon uring utilde wcirc ycirc Yuml zacute zcaron zdot
    """,
    "ISOnum": """
        half frac12 frac14 frac34 frac18 frac38 frac58 frac78 sup1 sup2 sup3 plus plusmn lt equals gt divide times curren pound
        dollar cent yen num percnt amp ast commat lsqb bsol rsqb lcub horbar verbar rcub micro ohm deg ordm ordf sect para middot
        larr rarr uarr darr copy reg trade brvbar not sung excl iexcl quot apos lpar rpar comma lowbar hyphen period sol colon
        semi quest iquest laquo raquo lsquo rsquo ldquo rdquo nbsp shy
    """,
    "ISOpub": """
        emsp ensp emsp13 emsp14 numsp puncsp thinsp hairsp mdash ndash dash blank hellip nldr frac13 frac23 frac15 frac25 frac35
        frac45 frac16 frac56 incare block uhblk lhblk blk14 blk12 blk34 marker cir squ rect utri dtri star bull squf utrif dtrif
        ltrif rtrif clubs diams hearts spades malt dagger Dagger check cross sharp flat male female phone telrec copysr caret
        lsquor ldquor fflig filig fjlig ffilig ffllig fllig mldr rdquor rsquor vellip hybull loz lozf ltri rtri starf natur rx
        sext target dlcrop drcrop ulcrop urcrop
    """,
    "ISOtech": """
        aleph and ang90 angsph ap becaus bottom cap cong conint cup equiv exist forall fnof ge iff infin int isin lang lArr le
        minus mnplus nabla ne ni or par part permil perp prime Prime prop radic rang rArr sim sime square sub sube sup supe there4
        Verbar angst bernou compfn Dot DotDot hamilt lagran lowast notin order phmmat tdot tprime wedgeq
    """,
    "ISOgrk1": """
        agr Agr bgr Bgr ggr Ggr dgr Dgr egr Egr zgr Zgr eegr EEgr thgr THgr igr Igr kgr Kgr lgr Lgr mgr Mgr ngr Ngr xgr Xgr ogr
        Ogr pgr Pgr rgr Rgr sgr Sgr sfgr tgr Tgr ugr Ugr phgr PHgr khgr KHgr psgr PSgr ohgr OHgr
    """,
    "ISOgrk2": """
        aacgr Aacgr eacgr Eacgr eeacgr EEacgr idigr Idigr iacgr Iacgr idiagr oacgr Oacgr udigr Udigr uacgr Uacgr udiagr ohacgr
        OHacgr
    """,
    "ISOgrk3": """
        alpha beta gamma Gamma gammad delta Delta epsi epsiv epsis zeta eta thetas Theta thetav iota kappa kappav lambda Lambda mu
        nu xi Xi pi piv Pi rho rhov sigma Sigma sigmav tau upsi Upsi phis Phi phiv chi psi Psi omega Omega
    """,
    "ISOgrk4": """
        b.alpha b.beta b.gamma b.Gamma b.gammad b.Gammad b.delta b.Delta b.epsi b.epsiv b.epsis b.zeta b.eta b.thetas b.Theta
        b.thetav b.iota b.kappa b.kappav b.lambda b.Lambda b.mu b.nu b.xi b.Xi b.pi b.Pi b.piv b.rho b.rhov b.sigma b.Sigma
        b.sigmav b.tau b.upsi b.Upsi b.phis b.Phi b.phiv b.chi b.psi b.Psi b.omega b.Omega
    """,
    "ISOcyr": """
        acy bcy vcy gcy dcy iecy iocy zhcy zcy icy jcy kcy lcy mcy ncy ocy pcy rcy scy tcy ucy fcy khcy tscy chcy shcy shchcy
        hardcy ycy softcy ecy yucy yacy numero djcy gjcy jukcy dscy iukcy yicy jsercy ljcy njcy tshcy kjcy ubrcy dzcy
    """,
    "ISObox": """
        boxh boxv boxur boxul boxdl boxdr boxvr boxhu boxvl boxhd boxvh boxvR boxhU boxvL boxhD boxvH boxH boxV boxUR boxUL boxDL
        boxDR boxVR boxHU boxVL boxHD boxVH boxVr boxHu boxVl boxHd boxVh boxuR boxUl boxdL boxDr boxUr boxuL boxDl boxdR
    """,
    "ISOdia": """
        acute breve caron cedil circ dblac die dot grave macr ogon ring tilde uml
    """,
    "ISOamsa": """
        cularr curarr dArr darr2 dharl dharr lAarr Larr larr2 larrhk larrlp larrtl lhard lharu hArr harr lrarr2 rlarr2 harrw
        rlhar2 lrhar2 lsh map mumap nearr nlArr nlarr nhArr nharr nrarr nrArr nwarr olarr orarr rAarr Rarr rarr2 rarrhk rarrlp
        rarrtl rarrw rhard rharu rsh drarr dlarr uArr uarr2 vArr varr uharl uharr xlArr xhArr xharr xrArr
    """,
    "ISOamsb": """
        amalg Barwed barwed Cap Cup cuvee cuwed diam divonx intcal lthree ltimes minusb oast ocir odash odot ominus oplus osol
        otimes plusb plusdo prod coprod rthree rtimes sdot sdotb setmn sqcap sqcup ssetmn sstarf sum timesb top uplus wreath xcirc
        xdtri xutri
    """,
    "ISOamsc": """
        rceil rfloor rpargt urcorn drcorn lceil lfloor lpargt ulcorn dlcorn
    """,
    "ISOamsn": """
        gnap gne gnE gnsim gvnE lnap lnE lne lnsim lvnE nap ncong nequiv ngE nge nges ngt nle nlE nles nlt nltri nltrie nmid npar
        npr npre nrtri nrtrie nsc nsce nsim nsime nsmid nspar nsub nsube nsubE nsup nsupE nsupe nvdash nvDash nVDash nVdash prnap
        prnE prnsim scnap scnE scnsim subne subnE supne supnE vsubnE vsubne vsupne vsupnE
    """,
    "ISOamso": """
        ang angmsd beth bprime comp daleth ell empty gimel image inodot jnodot nexist oS planck real sbsol vprime weierp
    """,
    "ISOamsr": """
        ape asymp bcong bepsi bowtie bsim bsime bump bumpe cire colone cuepr cuesc cupre dashv ecir ecolon eDot esdot efDot egs
        els erDot fork frown gap gsdot gE gel gEl ges Gg gl gsim Gt lap ldot lE lEg leg les lg Ll lsim Lt ltrie mid models pr prap
        pre prsim rtrie samalg sc scap sccue sce scsim sfrown smid smile spar sqsub sqsube sqsup sqsupe ssmile Sub subE Sup supE
        thkap thksim trie twixt vdash Vdash vDash veebar vltri vprop vrtri Vvdash
    """,
}


@pytest.mark.parametrize("names", SETS.values(), ids=SETS)
def test_every_name_of_the_set_is_known(names: str) -> None:
    assert [name for name in names.split() if name not in characters()] == []


@pytest.mark.parametrize("alphabet", ["scr", "fr", "opf"])
def test_letters_of_script_fraktur_and_double_struck(alphabet: str) -> None:
    for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ":
        assert unicodedata.normalize("NFKC", characters()[f"{letter}{alphabet}"]) == letter


def test_names_mean_what_their_letters_are_called() -> None:
    """Checked against the names that Unicode gives, not against the table itself."""
    known = {
        "agr": "GREEK SMALL LETTER ALPHA", "EEgr": "GREEK CAPITAL LETTER ETA", "THgr": "GREEK CAPITAL LETTER THETA",
        "sfgr": "GREEK SMALL LETTER FINAL SIGMA", "khgr": "GREEK SMALL LETTER CHI", "ohacgr": "GREEK SMALL LETTER OMEGA WITH TONOS",
        "Idigr": "GREEK CAPITAL LETTER IOTA WITH DIALYTIKA", "udiagr": "GREEK SMALL LETTER UPSILON WITH DIALYTIKA AND TONOS",
        "b.Gamma": "GREEK CAPITAL LETTER GAMMA", "b.thetas": "GREEK SMALL LETTER THETA",
        "ang90": "RIGHT ANGLE",
        "thetas": "GREEK SMALL LETTER THETA",
        "phis": "GREEK PHI SYMBOL",
        "epsis": "GREEK LUNATE EPSILON SYMBOL",
        "darr2": "DOWNWARDS PAIRED ARROWS", "larr2": "LEFTWARDS PAIRED ARROWS",
        "rarr2": "RIGHTWARDS PAIRED ARROWS", "uarr2": "UPWARDS PAIRED ARROWS", "lrarr2": "LEFTWARDS ARROW OVER RIGHTWARDS ARROW",
        "rlarr2": "RIGHTWARDS ARROW OVER LEFTWARDS ARROW", "rlhar2": "RIGHTWARDS HARPOON OVER LEFTWARDS HARPOON",
        "lrhar2": "LEFTWARDS HARPOON OVER RIGHTWARDS HARPOON", "drarr": "SOUTH EAST ARROW", "dlarr": "SOUTH WEST ARROW",
        "lpargt": "SPHERICAL ANGLE OPENING LEFT", "jnodot": "LATIN SMALL LETTER DOTLESS J",
        "sbsol": "SMALL REVERSE SOLIDUS", "vprime": "PRIME",
        "cupre": "PRECEDES OR EQUAL TO", "gsdot": "GREATER-THAN WITH DOT", "ldot": "LESS-THAN WITH DOT", "samalg": "N-ARY COPRODUCT",
    }  # fmt: skip
    assert {name: unicodedata.name(characters()[name]) for name in known} == known


def test_html_means_the_same_by_its_names() -> None:
    assert all(
        html.unescape(f"&{name};") == characters()[name] for name in ("alpha", "rsquo", "NotEqualTilde", "bne", "fjlig", "ThickSpace")
    )
    assert set(characters()) >= PREDEFINED


def test_every_name_in_the_real_files_is_known(shared_data: Path) -> None:
    named = re.compile(rb"&([A-Za-z][A-Za-z0-9._-]*);")
    found: set[str] = set()
    for path in sorted([*shared_data.rglob("*.xml"), *shared_data.rglob("*.nxml")]):
        found |= {name.decode() for name in named.findall(path.read_bytes())}
    for path in shared_data.rglob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                found |= {name.decode() for name in named.findall(archive.read(name))}
    assert found
    assert found - set(characters()) == set()
