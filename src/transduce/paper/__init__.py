"""The paper's tables and claims: its printed values, counts from the networks' sizes, and what was measured here."""

from transduce.paper.experiments import Claim, ClaimRunner, claims
from transduce.paper.page import measured_text, paper_page
from transduce.paper.tables import TABLES, Row, rows_of

__all__ = ["TABLES", "Claim", "ClaimRunner", "Row", "claims", "measured_text", "paper_page", "rows_of"]
