#!/usr/bin/env python3
"""Writes crates/stats/tests/fixtures/*.json: golden values from outside of this project.

Where SciPy or NumPy has the function, it is the oracle. Where neither has (MSER-5, the dip, two normal
laws, the exact studentised bootstrap, groups, change points, Shapley's value), the slowest and plainest method stands here: enumeration,
linear programming, a general optimiser. Nothing here shares code or method with crates/stats.

Needs numpy and scipy. Run from the top of the project: python3 scripts/fixtures-stats.py
"""

import itertools
import json
import math
import pathlib

import numpy as np
import scipy
from scipy import integrate, optimize, special, stats

OUT = pathlib.Path("crates/stats/tests/fixtures")
MADE = f"scripts/fixtures-stats.py, numpy {np.__version__}, scipy {scipy.__version__}"
RNG = np.random.default_rng(20_26)


def write(name, method, cases):
    OUT.mkdir(parents=True, exist_ok=True)
    body = {"made_by": MADE, "method": method, "cases": cases}
    (OUT / f"{name}.json").write_text(json.dumps(body, indent=1) + "\n")


def samples():
    """Log ratios as they come: tight, wide, shifted, skewed, few and many."""
    for n in (3, 4, 8, 12, 30):
        for shift, sd in ((0.0, 0.02), (0.03, 0.02), (-0.3, 0.1), (0.004, 0.005)):
            yield RNG.normal(shift, sd, n)
    yield RNG.exponential(0.05, 10)


def biweight(x):
    """Centre, standard error and degrees of freedom: the root of the score by bisection (not by weights),
    its slope by a complex step. The spread is that of normal values of which 70 % lie as near."""
    x = np.asarray(x)
    middle = np.median(x)
    spread = max(np.quantile(np.abs(x - middle), 0.7) / stats.norm.ppf(0.85), 1e-3)
    inside = lambda t: np.abs(x - np.real(t)) < 6 * spread
    scores = lambda t: np.where(inside(t), (x - t) * (1 - ((x - t) / (6 * spread)) ** 2) ** 2, 0)
    centre = optimize.brentq(lambda t: scores(t).sum(), middle - 2 * spread, middle + 2 * spread, xtol=1e-16)
    kept = -scores(centre + 1e-30j).sum().imag / 1e-30
    df = max(kept - 1, 1.0)
    return centre, math.sqrt((scores(centre) ** 2).sum() / (max(kept, 1) * df)), df


def t_of(centre, error, df, margin):
    """Intervals of the ratio, p and TOST of an estimate with its error, by Student's law."""
    law, inside = stats.t(df, scale=error), math.log1p(margin)
    ends = lambda chance: [math.exp(centre + law.ppf((1 + side * chance) / 2)) for side in (-1, 1)]
    low95, high95, low90, high90 = *ends(0.95), *ends(0.90)
    return {
        "df": df, "p": 2 * law.sf(abs(centre)), "low95": low95, "high95": high95, "margin": margin,
        "low90": low90, "high90": high90, "tost_p": max(law.sf(centre + inside), law.sf(inside - centre)),
    }


def paired():
    cases = []
    wild = [np.append(np.random.default_rng(1974).normal(0.05, 0.03, n), off) for n, off in
            ((3, 0.9), (7, -3.9), (11, 0.3), (15, 0.2), (29, 2.0))]
    for d in [*samples(), *wild]:
        centre, error, df = biweight(d)
        cases.append({"logs": list(d), "centre": centre, "error": error, **t_of(centre, error, df, 0.02)})
    write("paired", "biweight by scipy.optimize.brentq, error by a complex step; scipy.stats.t", cases)


def bootstrap():
    """Every one of the n^n resamples: the distribution that a seeded bootstrap only samples."""
    cases = []
    for d in (RNG.normal(0, 1, 6), RNG.exponential(1, 6), RNG.normal(5, 0.1, 7)):
        n, centre, error = len(d), np.mean(d), stats.sem(d)
        draws = np.array(list(itertools.product(range(n), repeat=n)))
        resamples = np.asarray(d)[draws]
        shift = resamples.mean(axis=1) - centre
        same = (draws == draws[:, :1]).all(axis=1)
        sem = resamples.std(axis=1, ddof=1) / math.sqrt(n)
        t = np.where(same, np.copysign(np.inf, shift), shift / np.where(same, 1.0, sem))
        t.sort()

        # Two quantiles about each end: 1999 random resamples lie between them.
        def end(share):
            return centre - t[int(share * len(t))] * error

        cases.append({
            "values": list(d),
            "low_between": [end(0.985), end(0.965)],
            "high_between": [end(0.035), end(0.015)],
        })
    write("bootstrap", "all n^n resamples of the t statistic, enumerated", cases)


def holm():
    cases = []
    for n in (1, 2, 3, 6, 28):
        p = RNG.uniform(0, 1, n) ** 3
        order, adjusted = np.argsort(p), np.empty(n)
        for rank, index in enumerate(order):
            # Straight from the definition: a maximum over all ranks so far.
            adjusted[index] = max(min(1.0, (n - j) * p[order[j]]) for j in range(rank + 1))
        cases.append({"p": list(p), "adjusted": list(adjusted)})
    write("holm", "the definition of Holm (1979), a maximum over ranks", cases)


def power():
    """Smallest n whose power by the noncentral t reaches 80 %, at the two levels in use and at one that
    Holm makes of the lower."""

    def reaches(n, effect, alpha):
        critical = stats.t.ppf(1 - alpha / 2, n - 1)
        shift = effect * math.sqrt(n)
        return stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift) >= 0.8

    cases = []
    for sd in (0.005, 0.01, 0.02, 0.05, 0.1):
        for margin in (0.01, 0.02, 0.05):
            effect = math.log1p(margin) / sd
            for alpha in (0.05, 0.02, 0.02 / 28):
                n = next(n for n in itertools.count(2) if reaches(n, effect, alpha))
                cases.append({"sd": sd, "margin": margin, "alpha": alpha, "blocks": n})
    write("power", "smallest n with scipy.stats.nct power >= 0.8", cases)


def quantiles():
    cases = []
    for n in (1, 2, 5, 20, 101):
        x = RNG.lognormal(0, 1, n)
        qs = [0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0]
        centred = x - x.mean()
        cases.append({
            "values": list(x), "q": qs,
            "quantiles": [float(np.quantile(x, q, method="linear")) for q in qs],
            "median": float(np.median(x)),
            "mad": float(stats.median_abs_deviation(x)),
            "lag1": float((centred[:-1] * centred[1:]).sum() / (centred**2).sum()) if n > 2 else None,
        })
    write("quantiles", "numpy.quantile(method='linear'), scipy median_abs_deviation", cases)


def ranks():
    """Exact ranks of the 95 % interval of a quantile, by the binomial law."""
    cases = []
    for n, q in ((40, 0.5), (100, 0.5), (500, 0.9), (1000, 0.99), (8000, 0.999)):
        law = stats.binom(n, q)
        cases.append({"n": n, "q": q, "low": int(law.ppf(0.025)), "high": int(law.ppf(0.975)) + 1})
    write("quantile_ranks", "scipy.stats.binom.ppf", cases)


def mser5():
    """Every truncation, each from scratch."""
    cases = []
    for n in (19, 20, 47, 60, 200):
        noise = RNG.normal(0, 3, n)
        ramp = np.minimum(100, 60 + np.arange(n) * 3.0)
        step = np.where(np.arange(n) < n // 4, 80, 100)
        decay = 100 * (1 - np.exp(-np.arange(n) / 8))
        for shape in (np.full(n, 100.0), ramp, step, decay, np.linspace(0, 100, n)):
            series = shape + noise
            batches = [series[i : i + 5].mean() for i in range(0, n - n % 5, 5)]
            k = len(batches)
            errors = [np.var(batches[d:]) / (k - d) for d in range(k // 2 + 1)] if k >= 4 else [0]
            best = int(np.argmin(errors))
            bound = k >= 4 and best == k // 2
            cases.append({"series": list(series), "cut": 5 * best, "at_bound": bound})
    write("mser5", "every truncation up to half, numpy.var over what is left", cases)


def dip_by_programming(x):
    """min d such that a function convex up to some x_j and concave after it, with a jump allowed at
    x_j, stays within d of the staircase; one linear programme for each j."""
    x = np.sort(x)
    n = len(x)
    best = math.inf
    for mode in range(n):
        # Variables: F at each point (left limit at the mode), the right limit at the mode, d.
        rows, bounds = [], []

        def at_most(terms, bound):
            row = np.zeros(n + 2)
            for index, factor in terms:
                row[index] += factor
            rows.append(row)
            bounds.append(bound)

        after = lambda i: n if i == mode else i  # where F is read from the right
        for i in range(n):
            at_most([(i, 1), (n + 1, -1)], i / n)  # F(x-) <= lower + d
            at_most([(i, -1), (n + 1, -1)], -i / n)
            at_most([(after(i), 1), (n + 1, -1)], (i + 1) / n)
            at_most([(after(i), -1), (n + 1, -1)], -(i + 1) / n)
        at_most([(mode, 1), (n, -1)], 0)
        for i in range(n - 1):
            at_most([(after(i), 1), (i + 1, -1)], 0)
        for i in range(n - 2):
            one, two = 1 / (x[i + 1] - x[i]), 1 / (x[i + 2] - x[i + 1])
            if i + 2 <= mode:  # slopes rise
                at_most([(i + 1, one), (i, -one), (i + 2, -two), (i + 1, two)], 0)
            if i >= mode:  # slopes fall
                at_most([(i + 1, -one), (after(i), one), (i + 2, two), (i + 1, -two)], 0)
        goal = np.zeros(n + 2)
        goal[n + 1] = 1
        answer = optimize.linprog(goal, np.array(rows), np.array(bounds), bounds=(None, None))
        assert answer.success, answer.message
        best = min(best, answer.fun)
    return best


def dips():
    cases = []
    for n in (4, 5, 8, 12, 20, 31):
        for law in (
            RNG.normal(0, 1, n),
            RNG.uniform(0, 1, n),
            RNG.exponential(1, n),
            RNG.normal(0, 1, n) + 4 * (RNG.uniform(0, 1, n) < 0.5),
            RNG.normal(0, 1, n) + 9 * (np.arange(n) % 3 == 0) + 5 * (np.arange(n) % 3 == 1),
        ):
            cases.append({"values": list(law), "dip": float(dip_by_programming(law))})
    write("dip", "the definition as linear programmes, scipy.optimize.linprog (HiGHS)", cases)


def clusters():
    """One law and two laws of one standard deviation, by a general optimiser from many starts."""
    cases = []
    for n, apart, share in ((10, 6, 0.5), (12, 10, 0.3), (20, 4, 0.5), (40, 5, 0.4), (40, 8, 0.2)):
        x = RNG.normal(0, 1, n) + apart * (np.arange(n) < share * n)

        def loss(p):
            w = 1 / (1 + math.exp(-p[0]))
            sd = math.exp(p[3])
            low = np.log(w) + stats.norm.logpdf(x, p[1], sd)
            high = np.log1p(-w) + stats.norm.logpdf(x, p[2], sd)
            return -np.logaddexp(low, high).sum()

        starts = [
            [0.0, np.quantile(x, a), np.quantile(x, b), math.log(np.std(x) / 3)]
            for a, b in ((0.1, 0.9), (0.25, 0.75), (0.05, 0.5), (0.5, 0.95))
        ]
        options = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-10, "fatol": 1e-12}
        fits = [optimize.minimize(loss, s, method="Nelder-Mead", options=options) for s in starts]
        fit = min(fits, key=lambda fit: fit.fun)
        one = -stats.norm.logpdf(x, x.mean(), x.std()).sum()
        cases.append({
            "values": list(x),
            "centres": sorted(map(float, fit.x[1:3])),
            "sd": math.exp(fit.x[3]),
            "delta_bic": 2 * (one - fit.fun) - 2 * math.log(n),
        })
    write("clusters", "scipy.optimize.minimize (Nelder-Mead), four starts", cases)


def anderson_darling():
    """The statistic from SciPy's general test of fit; p from the series of Anderson and Darling (1954,
    eq. 4.12) for many values, and by simulation for ten. A generator of its own: adding this changed no
    other fixture."""
    rng = np.random.default_rng(1954)
    tests = []
    for n, law, params in (
        (1, stats.expon, (0, 0.5)), (5, stats.expon, (0, 2.0)), (200, stats.expon, (0, 0.001)),
        (200, stats.expon, (0, 1.3)), (7, stats.uniform, (0, 1)), (300, stats.uniform, (0, 1)),
    ):
        for x in (law.rvs(*params, size=n, random_state=rng), law.rvs(*params, size=n, random_state=rng) ** 1.1):
            known = dict(zip(("loc", "scale"), params))
            fit = stats.goodness_of_fit(
                law, x, known_params=known, statistic="ad", n_mc_samples=1, rng=rng)
            tests.append({"law": law.name, "rate": 1 / params[1], "values": list(x), "a2": fit.statistic})

    def below_limit(z):
        def term(j):
            k = 4 * j + 1
            inside = lambda w: math.exp(z / (8 * (w * w + 1)) - k * k * math.pi**2 * w * w / (8 * z))
            area = integrate.quad(inside, 0, math.inf, epsabs=1e-14, epsrel=1e-13)[0]
            binomial = (-1) ** j * special.poch(0.5, j) / math.factorial(j)
            return binomial * k * math.exp(-k * k * math.pi**2 / (8 * z)) * area
        return math.sqrt(2 * math.pi) / z * sum(map(term, range(12)))

    u = np.sort(rng.uniform(size=(1_000_000, 10)), axis=1)
    weights = 2 * np.arange(10) + 1
    a2 = -10 - (weights * (np.log(u) + np.log1p(-u[:, ::-1]))).sum(axis=1) / 10
    at = (0.2, 0.4, 0.77, 1.25, 1.933, 2.1, 2.492, 3.07, 3.857, 6.0)
    p_values = [{"a2": z, "limit": 1 - below_limit(z), "ten": float((a2 > z).mean())} for z in at]
    write("anderson_darling", "scipy.stats.goodness_of_fit; scipy.integrate.quad of the limit's series; "
          "a million samples of ten", [{"tests": tests, "p_values": p_values}])


# Each of those below has a generator of its own: adding one changes no other fixture.


def expanded(n):
    """The tail that a 95 % interval of n blocks takes from percentiles (Hesterberg 2015, 3.3)."""
    return stats.norm.cdf(-stats.t.ppf(0.975, n - 1) * math.sqrt(n / (n - 1)))


def bca():
    rng = np.random.default_rng(1987)
    cases = []
    for x, name in (
        (rng.normal(0, 1, 8), "mean"), (rng.exponential(1, 10), "mean"), (rng.exponential(1, 30), "mean"),
        (rng.normal(0, 1, 20), "sd"), (rng.lognormal(0, 0.5, 12), "log_mean"),
    ):
        statistic = {
            "mean": lambda v, axis: v.mean(axis=axis),
            "sd": lambda v, axis: v.std(axis=axis, ddof=1),
            "log_mean": lambda v, axis: np.log(v.mean(axis=axis)),
        }[name]
        ci = stats.bootstrap(
            (x,), statistic, method="BCa", confidence_level=1 - 2 * expanded(len(x)),
            n_resamples=400_000, batch=20_000, rng=rng).confidence_interval
        cases.append({"values": list(x), "statistic": name, "low": ci.low, "high": ci.high})
    write("bca", "scipy.stats.bootstrap(method='BCa'), 400 000 resamples, confidence level "
          "1 - 2 norm.cdf(-t.ppf(0.975, n-1) sqrt(n/(n-1)))", cases)


def hodges_lehmann():
    """The interval is where scipy's exact signed-rank test does not refuse the centre."""
    rng = np.random.default_rng(1963)
    cases = []
    for n in (1, 2, 5, 6, 8, 13, 25):
        x = rng.standard_t(3, n)
        walsh = np.sort([(x[i] + x[j]) / 2 for i in range(n) for j in range(i, n)])
        case = {"values": list(x), "centre": float(np.median(walsh)), "low": None, "high": None}
        if n >= 6:
            middles = (walsh[1:] + walsh[:-1]) / 2
            kept = [stats.wilcoxon(x - m, method="exact").pvalue > 0.05 for m in middles]
            first, last = kept.index(True), len(kept) - 1 - kept[::-1].index(True)
            case |= {"low": walsh[first], "high": walsh[last + 1]}
        cases.append(case)
    write("hodges_lehmann", "numpy.median of all means of two; scipy.stats.wilcoxon inverted", cases)


def harrell_davis():
    rng = np.random.default_rng(1982)
    cases = []
    for n in (400, 1000, 5000):
        x = np.sort(np.round(rng.lognormal(13, 0.7, n)))
        qs = [q for q in (0.1, 0.25, 0.5, 0.9, 0.99, 0.999) if n >= math.log(0.025) / math.log(max(q, 1 - q))]
        golden = stats.mstats.hdquantiles(x, prob=qs)
        cases.append({"values": list(x), "q": qs, "quantiles": [float(v) for v in golden]})
    write("harrell_davis", "scipy.stats.mstats.hdquantiles", cases)


def groups():
    """All largest sets without a pair told apart, by trying all sets."""
    rng = np.random.default_rng(2004)
    cases = []
    for n in (2, 3, 5, 6, 8, 8, 9):
        level = np.sort(rng.uniform(0, 4, n))
        apart = [[a, b] for a in range(n) for b in range(a + 1, n)
                 if level[b] - level[a] + rng.normal(0, 0.5) > 1.0]
        told = {tuple(pair) for pair in apart}
        sets = [set(s) for k in range(1, n + 1) for s in itertools.combinations(range(n), k)
                if not any(pair in told for pair in itertools.combinations(s, 2))]
        largest = [sorted(s) for s in sets if not any(s < other for other in sets)]
        cases.append({"n": n, "apart": apart, "groups": sorted(largest)})
    write("groups", "all sets of contenders, those without a pair told apart, those in no larger one", cases)


def best():
    """The posterior of the means: a t distribution with n - 1 degrees of freedom, by scipy's sampler; of two
    contenders by its distribution function."""
    rng = np.random.default_rng(6)
    cases = []
    for k, spread in ((2, 0.05), (3, 0.02), (5, 0.05)):
        rows = rng.normal(0, spread, (k, 6)) + rng.normal(0, 0.1, 6) + 0.01 * np.arange(k)[:, None]
        if k == 5:
            rows[4] = rows[3]
        # Against the first: what a block does to all cancels out.
        apart = rows[1:] - rows[0]
        if k == 2:
            t = apart[0].mean() / (apart[0].std(ddof=1) / math.sqrt(6))
            shares = [float(stats.t.sf(t, 5)), float(stats.t.cdf(t, 5))]
        else:
            law = stats.multivariate_t(
                apart.mean(axis=1), np.cov(apart) / 6, df=5, allow_singular=True, seed=6
            )
            drawn = np.round(law.rvs(2_000_000), 9)
            drawn = np.column_stack([np.zeros(len(drawn)), drawn])
            tops = drawn == drawn.max(axis=1)[:, None]
            shares = list((tops / tops.sum(axis=1)[:, None]).mean(axis=0))
        cases.append({"rows": rows.tolist(), "shares": shares})
    write("best", "scipy.stats.t of two, 2,000,000 draws of scipy.stats.multivariate_t of more", cases)


def explained():
    """Shapley's value from its definition: a mean over all orders in which the causes are exchanged."""
    rng = np.random.default_rng(1953)
    cases = []
    shapes = (
        ((300e3, 20_000, []), (300e3, 20_000, [(200e6, 300)])),
        ((400e3, 20_000, [(40e6, 600)]), (300e3, 20_000, [(40e6, 100), (1e9, 40)])),
        ((250e3, 30_000, []), (500e3, 5_000, [])),
        ((2e6, 5_000, [(1e9, 200)]), (5e6, 5_000, [(200e6, 100)])),
    )
    for sides in shapes:
        case = {"mains": [], "stalls": []}
        for name, (main, n, stalls) in zip("ab", sides):
            body = np.round(rng.lognormal(math.log(main), 0.25, n))
            late = np.round(np.concatenate([[], *(rng.uniform(at, 1.05 * at, k) for at, k in stalls)]))
            case["mains"].append([int(v) for v in np.unique(body // 4096 * 4096)])
            counts = np.unique(body // 4096 * 4096, return_counts=True)[1]
            case["main_counts"] = case.get("main_counts", []) + [[int(c) for c in counts]]
            case["stalls"].append([int(v) for v in late])
        full = [(np.repeat(m, c), np.array(s, float)) for m, c, s in zip(case["mains"], case["main_counts"], case["stalls"])]
        parts = [{"m": m.mean(), "p": len(s) / (len(m) + len(s)), "s": s.mean() if len(s) else 0.0} for m, s in full]

        def mean(sides):
            m, (p, s) = parts[sides["service"]]["m"], (parts[sides["stalls"]][k] for k in "ps")
            return (1 - p) * m + p * s

        for scale, by in (("ns", lambda v: v), ("ln", math.log)):
            value = {"service": 0.0, "stalls": 0.0}
            for order in itertools.permutations(value):
                at = {"service": 1, "stalls": 1}
                for cause in order:
                    before = by(mean(at))
                    at[cause] = 0
                    value[cause] += (by(mean(at)) - before) / 2
            case[scale] = value
        case["shares"] = [part["p"] for part in parts]
        cases.append(case)
    write("explained", "Shapley's value as the mean over all orders of exchange", cases)


def change_points():
    """Every division, by dynamic programming without pruning; costs from numpy.var of each stretch."""
    rng = np.random.default_rng(2012)
    cases = []

    def series(n):
        yield rng.normal(100, 3, n)
        yield rng.normal(100, 3, n) - np.where(np.arange(n) < n // 3, 12, 0)
        yield np.concatenate([rng.normal(100, 1, n // 2), rng.normal(100, 8, n - n // 2)])
        yield 100 * (1 - np.exp(-np.arange(n) / (n / 8))) + rng.normal(0, 1, n)
        yield np.round(rng.normal(100, 1, n) + 20 * (np.arange(n) % (n // 3) < n // 6))
        yield np.concatenate([np.full(n // 2, 50.0), np.full(n - n // 2, 60.0)])

    for n in (20, 43, 60, 150):
        for x in series(n):
            z = (x - x.mean()) / x.std(ddof=1)
            penalty = 6 * math.log(n)

            def cost(i, j):
                v = np.var(z[i:j])
                likely = max(v, 1e-4)
                return (j - i) * (math.log(likely) + v / likely)

            least, begins = [-penalty] + [math.inf] * n, [0] * (n + 1)
            for end in range(5, n + 1):
                for begin in range(0, end - 4):
                    total = least[begin] + cost(begin, end) + penalty
                    if total < least[end] - 1e-9:
                        least[end], begins[end] = total, begin
            found, at = [], begins[n]
            while at > 0:
                found, at = [at] + found, begins[at]
            cases.append({"series": list(x), "change_points": found})
    write("change_points", "every division into segments of 5 or more, normal likelihood, 6 ln n a change", cases)


def scalability():
    rng = np.random.default_rng(2007)
    cases = []
    laws = ((1000, 0.05, 1e-4), (8000, 0.0, 2e-3), (500, 0.3, 0.0), (20_000, 0.02, 1e-6), (100, 0.0, 0.0))
    for levels in ((1, 2, 4, 8, 16, 32), (1, 10, 100, 1000), (2, 20, 50)):
        for scale, sigma, kappa in laws:
            n = np.repeat(levels, 4)
            law = lambda p, n: p[0] + np.log(n) - np.log(1 + p[1] * (n - 1) + p[2] * n * (n - 1))
            y = law((math.log(scale), sigma, kappa), n) + rng.normal(0, 0.03, len(n))
            best = None
            for start in ((0.1, 1e-3), (1e-3, 1e-6), (0.5, 1e-5)):
                fit = optimize.least_squares(
                    lambda p: law(p, n) - y, [y.max(), *start], bounds=([-50, 0, 0], np.inf),
                    x_scale=[1, 0.01, 1e-5], xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=20_000)
                best = fit if best is None or fit.cost < best.cost else best
            cases.append({
                "concurrency": n.tolist(), "rates": list(np.exp(y)), "lambda": math.exp(best.x[0]),
                "sigma": best.x[1], "kappa": best.x[2], "squares": 2 * best.cost,
            })
    write("scalability", "scipy.optimize.least_squares of ln X, three starts, bounds at 0", cases)


def two_sample():
    # A generator of its own: the fixtures before it stay as they are.
    rng = np.random.default_rng(1947)
    cases = []
    sides = ((3, 0.02, 3, 0.02), (8, 0.02, 8, 0.02), (12, 0.01, 8, 0.05), (30, 0.02, 6, 0.1))
    for n_a, sd_a, n_b, sd_b in sides:
        for shift in (0.0, -0.05):
            a, b = rng.normal(9.2 + shift, sd_a, n_a), rng.normal(9.2, sd_b, n_b)
            if n_a == 12:
                a = 9.2 + shift + rng.exponential(sd_a, n_a)
            (at_a, error_a, df_a), (at_b, error_b, df_b) = biweight(a), biweight(b)
            error = math.hypot(error_a, error_b)
            # Welch and Satterthwaite.
            df = error**4 / (error_a**4 / df_a + error_b**4 / df_b)
            cases.append({"a": list(a), "b": list(b), **t_of(at_a - at_b, error, df, 0.02)})
    write("two_sample", "biweight of each side as in paired; Welch and Satterthwaite; scipy.stats.t", cases)


for make in (
    paired, bootstrap, holm, power, quantiles, ranks, mser5, dips, clusters, anderson_darling, bca,
    hodges_lehmann, harrell_davis, groups, best, explained, change_points, scalability,
    two_sample,
):
    make()
